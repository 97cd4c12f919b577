// An answer of the kernel fills memory, and gives memory to a device. So only the runtime asks it.
// A test's seam takes a kernel of the test's, and shows no caller this one.
use contigo::linux::vfio::kernel::RealVfio; //~ E0603 module `kernel` is private

fn main() {
    let _ = RealVfio;
}
