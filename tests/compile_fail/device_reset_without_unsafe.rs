// That no code is starting a job on the device is a claim.
use contigo::{linux::{dev_node::DevNode, vfio::Vfio}, names::OpenDevice};

fn by_the_kernel_module(dev_node: &DevNode) {
    let _ = dev_node.reset(); //~ E0133 call to unsafe function `contigo::linux::dev_node::DevNode::reset` is unsafe and requires unsafe block
}

fn by_its_name(device: &OpenDevice) {
    let _ = device.reset(); //~ E0133 call to unsafe function `names::open_device::<impl OpenDevice>::reset` is unsafe and requires unsafe block
}

fn by_vfio(vfio: &Vfio) {
    let _ = vfio.reset(); //~ E0133 call to unsafe function `vfio::device::<impl Vfio>::reset` is unsafe and requires unsafe block
}

fn main() {}
