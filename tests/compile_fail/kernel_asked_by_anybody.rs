// error: E0603
// Who asks the kernel says how much memory an answer may fill, and which memory a device gets: the runtime alone does. A test's
// seam takes a kernel of the test's, and shows nobody this one.
use contigo::linux::vfio::kernel::RealVfio;

fn main() {
    let _ = RealVfio;
}
