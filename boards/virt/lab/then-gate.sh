# Run as root in the guest after the first tests, and before they run again; share and contigo_pci
# are in cross/lab/guest/init.sh. The same function by the module contigo.
contigo_pci 0x1234 0x4754 gemm8
share /dev/contigo/*
