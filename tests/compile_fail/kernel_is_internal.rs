// An ioctl writes registers and gives up memory. So only the runtime calls the kernel. A test's
// seam takes a kernel of the test's.
use contigo::linux::os::kernel::Running; //~ E0603 module `kernel` is private

fn main() {
    let _ = Running;
}
