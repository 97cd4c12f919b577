# Run as root in the guest before the tests; share and bind_platform are in cross/lab/guest/init.sh.
# First the PL330 by UIO, as a board has it that has no module of this project's.
bind_platform f8003000.dmac uio_pdrv_genirq
share /dev/uio* /dev/dma_heap/* /dev/udmabuf[0-9]*
