// error: E0423
// Who asks the kernel says how much memory an answer may fill, and which memory a device gets: the runtime alone does.
use contigo::linux::vfio::seam::RealVfio;

fn main() {
    let _ = RealVfio(());
}
