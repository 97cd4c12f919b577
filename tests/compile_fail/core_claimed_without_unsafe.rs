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
    let _ = Gemm8::open(device); //~ E0133 call to unsafe function `Gemm8::<D>::open` is unsafe and requires unsafe block
}

fn zdma(device: VfioDevice) {
    let _ = Zdma::simple(device); //~ E0133 call to unsafe function `Zdma::<D>::simple` is unsafe and requires unsafe block
}

fn zdma_linked(device: VfioDevice, descriptors: CpuBuf) {
    let _ = Zdma::linked(device, descriptors); //~ E0133 call to unsafe function `Zdma::<D>::linked` is unsafe and requires unsafe block
}

fn pl330(device: VfioDevice, program: CpuBuf) {
    let _ = Pl330::open(device, program); //~ E0133 call to unsafe function `Pl330::<D>::open` is unsafe and requires unsafe block
}

fn pl330_with(device: VfioDevice, program: CpuBuf) {
    let _ = Pl330::open_with(device, program, Pl330Config::default()); //~ E0133 call to unsafe function `Pl330::<D>::open_with` is unsafe and requires unsafe block
}

fn main() {}
