//! Files that are damaged at random: an error or a design, never a panic, in bounded time.

use super::{ZYNQ, ZYNQMP};
use contigo::design::Design;
use fastrand::Rng;
use std::time::{Duration, Instant};

/// Asks a design everything.
fn ask(design: &Design<'_>) -> usize {
    let mut answers = 0;
    for core in design.instances() {
        answers += usize::from(core.windows().is_ok())
            + usize::from(core.masters().is_ok())
            + usize::from(core.port().is_ok());
        answers += core.interrupts().map_or(0, |interrupts| interrupts.len())
            + core.clocks().count()
            + core.registers().count();
        answers += usize::from(contigo::names::driver_of(&core).is_some())
            + usize::from(contigo::names::settings_of(&core).is_ok())
            + usize::from(contigo::names::device_of(&core).is_ok());
        answers += usize::from(core.controller_goes().is_ok());
        std::hint::black_box((core.number("C_SG_LENGTH_WIDTH"), contigo::names::node_of(&core)));
    }
    answers
}

#[test]
fn damaged_files_are_errors_or_designs() {
    let mut rng = Rng::with_seed(1);
    let (mut designs, mut errors, mut answers) = (0, 0, 0);
    for round in 0..200 {
        let mut bytes = if round % 2 == 0 { ZYNQ } else { ZYNQMP }.as_bytes().to_vec();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            match rng.u8(..4) {
                0 => bytes[at] = rng.u8(..),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, *rng.choice(b"<>\"'/=0123456789-x\n\0\xFF").unwrap()),
                _ => {
                    let end = rng.usize(at..bytes.len().min(at + 400));
                    let part = bytes[at..end].to_vec();
                    let to = rng.usize(..bytes.len());
                    bytes.splice(to..to, part);
                }
            }
        }
        match Design::read(&bytes) {
            Ok(design) => {
                answers += ask(&design);
                designs += 1;
            }
            Err(error) => {
                assert!(error.line > 0 && error.byte as usize <= bytes.len(), "{error}");
                errors += 1;
            }
        }
    }
    assert!(designs > 60 && errors > 15 && answers > designs * 50, "{designs} {errors} {answers}");
}

/// Wires that lead in circles, and concatenations of concatenations, end.
#[test]
fn circles_end() {
    let circle = ZYNQ.replace(
        "<CONNECTION INSTANCE=\"ps7\" PORT=\"IRQ_F2P\"/>",
        "<CONNECTION INSTANCE=\"irqs\" PORT=\"In0\"/><CONNECTION INSTANCE=\"irqs\" PORT=\"In1\"/>",
    );
    let circle = circle.replace("BUSNAME=\"slice_M_AXI\"", "BUSNAME=\"scale_0_m_axi_gmem\"");
    let begin = Instant::now();
    let design = Design::read(circle.as_bytes()).unwrap();
    assert!(ask(&design) > 0);
    assert!(
        design.core("scale_0").unwrap().port().is_err()
            || design.core("axi_dma_0").unwrap().interrupts().is_ok()
    );
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}
