// A call of the kernel's module writes registers and gives up memory. So only the runtime calls it.
// A test's seam takes a kernel of the test's, and shows no caller this one.
use contigo::linux::dev_node::kernel::RealDevNode; //~ E0603 module `kernel` is private

fn main() {
    let _ = RealDevNode;
}
