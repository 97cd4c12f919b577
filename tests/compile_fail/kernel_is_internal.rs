// An ioctl writes registers and gives up memory. So only the runtime calls the kernel, except with
// the feature `testkit`, where a test's kernel is in its place.
use contigo::linux::os::kernel::Running; //~ E0603 module `kernel` is private

fn main() {
    let _ = Running;
}
