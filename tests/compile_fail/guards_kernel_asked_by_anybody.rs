// error: E0603
// Who asks the kernel's module makes it write registers and give up memory: the runtime alone does. A test's seam takes a
// kernel of the test's, and shows nobody this one.
use contigo::linux::guard::kernel::RealGuard;

fn main() {
    let _ = RealGuard;
}
