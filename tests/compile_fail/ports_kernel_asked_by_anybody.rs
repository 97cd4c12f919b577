// error: E0423
// Who asks the kernel's module makes it write registers and give up memory: the runtime alone does.
use contigo::linux::guard::seam::RealPort;

fn main() {
    let _ = RealPort(());
}
