// error: E0133
// Which core a window is, is a claim, also where an IOMMU confines the device.
use contigo::{
    drivers::{
        pl330::{Pl330, Pl330Config},
        zdma::Zdma,
    },
    linux::vfio::VfioDevice,
    CpuBuf,
};
use contigo_gemm8::Gemm8;

fn gemm8(device: VfioDevice) {
    let _ = Gemm8::open(device);
}

fn zdma(device: VfioDevice) {
    let _ = Zdma::simple(device);
}

fn zdma_linked(device: VfioDevice, descriptors: CpuBuf) {
    let _ = Zdma::linked(device, descriptors);
}

fn pl330(device: VfioDevice, program: CpuBuf) {
    let _ = Pl330::open(device, program);
}

fn pl330_with(device: VfioDevice, program: CpuBuf) {
    let _ = Pl330::open_with(device, program, Pl330Config::default());
}

fn main() {}
