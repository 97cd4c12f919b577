//! Links in documents lead somewhere, and their code compiles and runs.

mod blocks;
mod conversions;
mod links;
pub(crate) mod markdown;

// The programs that pages quote.
#[allow(unused, clippy::all, clippy::indexing_slicing, unsafe_code, reason = "quoted by pages")]
#[path = "../../../docs/examples/accelerator.rs"]
mod accelerator;
#[allow(unused, clippy::all, unsafe_code, reason = "quoted by pages")]
#[path = "../../../docs/examples/accelerator_board.rs"]
mod accelerator_board;
#[allow(unused, clippy::all, unsafe_code, reason = "quoted by pages")]
#[path = "../../../docs/examples/board.rs"]
mod board;
#[allow(unused, clippy::all, clippy::indexing_slicing, unsafe_code, reason = "quoted by pages")]
#[path = "../../../docs/examples/camera.rs"]
mod camera;
// Programs of their own, whose `main` is called here.
#[allow(clippy::all, clippy::indexing_slicing, unsafe_code, reason = "quoted by pages")]
mod fir {
    include!("../../../docs/examples/fir.rs");

    pub(crate) fn run() -> contigo::Result<()> {
        main()
    }
}
// What `contigo map` prints: the map is checked as it is compiled.
#[allow(unused, unreachable_pub, reason = "a page shows it")]
#[path = "../../../docs/examples/fir_map.rs"]
mod fir_map;
#[allow(clippy::all, unsafe_code, reason = "quoted by pages")]
mod first {
    include!("../../../docs/examples/first.rs");

    pub(crate) fn run() -> contigo::Result<()> {
        main()
    }
}
#[allow(unused, clippy::all, unsafe_code, reason = "quoted by pages")]
#[path = "../../../docs/examples/frameworks.rs"]
mod frameworks;
#[allow(unused, clippy::all, unsafe_code, reason = "quoted by pages")]
#[path = "../../../docs/examples/gate.rs"]
mod gate;
#[cfg(target_pointer_width = "64")]
#[allow(unused, clippy::all, unsafe_code, reason = "quoted by pages")]
#[path = "../../../docs/examples/gpu.rs"]
mod gpu;
#[allow(unused, clippy::all, unsafe_code, reason = "quoted by pages")]
#[path = "../../../docs/examples/jobs.rs"]
mod jobs;
#[allow(unused, clippy::all, unsafe_code, reason = "quoted by pages")]
#[path = "../../../docs/examples/memories.rs"]
mod memories;

/// The constant that `contigo map` prints has all of the map: also alignment and limits.
#[test]
fn printed_map_is_the_whole_map() -> contigo::Result<()> {
    use contigo::Direction::{FromDevice, ToDevice};
    let header = include_bytes!("../../../docs/examples/xfir_hw.h");
    let map = contigo::design::kernel::any(header, "")?;
    let map = map.direction("x", ToDevice).direction("y", FromDevice);
    let map = map.length("x", "4*n").length("y", "4*n").build()?;
    assert_eq!(fir_map::FIR.to_string(), map.to_string());
    Ok(())
}

#[test]
fn the_programs_run() -> contigo::Result<()> {
    fir::run()?;
    first::run()?;
    memories::run()?;
    jobs::run()?;
    accelerator::kernel()?;
    accelerator::stream()?;
    accelerator::own_registers()?;
    camera::run()?;
    frameworks::run()
}
