#![allow(unsafe_code, reason = "the caller says which core is behind registers")]
//! `?` in programs that answer with one type of error. `docs/errors.md` says which errors become
//! which.

use contigo::design::{Design, kernel};
use contigo::drivers::ap_ctrl::ApCtrl;
use contigo::job::AnyDriver;
use contigo::names::{Attach, DeviceName, MemoryName};
use contigo::sim::zdma::ZdmaModel;
use contigo::sim::{SimBoard, SimDevice};
use contigo::{Error, Queue, Region};
use std::time::Duration;
use std::{error, fs, io};

const MAP: &[u8] = include_bytes!("../../../../docs/examples/copy.json");

/// An error as anyhow has it: its `From` asks for the same.
#[derive(Debug)]
struct Anyhow(Box<dyn error::Error + Send + Sync>);

impl<E: error::Error + Send + Sync + 'static> From<E> for Anyhow {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

/// A program with each type of error of the runtime, and one of std.
macro_rules! program {
    ($name:ident, $result:ty) => {
        fn $name(file: &str) -> $result {
            let device = "sim:ap_ctrl".parse::<DeviceName>()?.open()?;
            let region = Region::new(device.memory(&"sim".parse()?, 1 << 16)?)?;
            let map = kernel::any(MAP, "")?.build()?;
            // SAFETY: the device is this kernel, and no other code drives it.
            let driver = unsafe { ApCtrl::open(device.attach(Attach::default())?, map)? };
            let mut copy = Queue::new(driver, 1)?;
            let [from, to] = [region.alloc(64, region.line())?, region.alloc(64, region.line())?];
            let operands = [from.to_device(..), to.from_device(..)];
            let _ = copy.run(operands, &[64], Duration::from_millis(20))?;
            // What this refusal gives back is a driver of any kind, which threads do not share.
            let board = SimBoard::new(1);
            let any = AnyDriver::new(
                SimDevice::<ZdmaModel>::new(&board, board.port()).window()?.simple()?,
            )?;
            drop(Queue::new(any, 4)?);
            Design::read(&fs::read(file)?)?;
            Ok(())
        }
    };
}
program!(of_std, io::Result<()>);
program!(of_contigo, contigo::Result<()>);
program!(of_any, Result<(), Box<dyn error::Error>>);
program!(of_anyhow, Result<(), Anyhow>);

#[test]
fn main_of_any_result_reads_files() {
    let design = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/design.hwh");
    of_std(design).unwrap();
    of_contigo(design).unwrap();
    of_any(design).unwrap();
    of_anyhow(design).unwrap();
    assert!(of_any("/no/such/file").unwrap_err().is::<io::Error>());
    assert!(of_anyhow("/no/such/file").unwrap_err().0.is::<io::Error>());
    assert_eq!(of_std("/no/such/file").unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(of_contigo("/no/such/file"), Err(Error::Os { call: "a call of std::io", errno: 2 }));
    let no_design = of_std(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap_err();
    assert!(no_design.to_string().contains("hand-off of Vivado's"), "{no_design}");
}

/// Each keeps its whole text, and has the kind of its errno. Back again it is the same error.
#[test]
fn every_error_becomes_one_of_std() {
    let name = "uio:a/b".parse::<MemoryName>().unwrap_err();
    let map = kernel::any(b"{}", "").and_then(|map| map.build()).unwrap_err();
    let design = Design::read(b"<EDKSYSTEM>").map(drop).unwrap_err();
    for (own, text) in [
        (io::Error::from(name), name.to_string()),
        (map.into(), map.to_string()),
        (design.into(), design.to_string()),
    ] {
        assert_eq!((own.kind(), own.to_string()), (io::ErrorKind::InvalidInput, text));
        assert_eq!(Error::from(own), Error::Os { call: "a call of std::io", errno: 22 });
    }
    for error in
        [Error::Busy, Error::Timeout { timeout_us: 7 }, Error::Os { call: "mmap", errno: 12 }]
    {
        let own = io::Error::from(error);
        assert_eq!(
            (own.kind(), own.to_string()),
            (io::Error::from_raw_os_error(error.errno()).kind(), error.to_string())
        );
        assert_eq!(Error::from(own), error);
    }
    for (kind, errno) in [
        (io::ErrorKind::NotFound, 2),
        (io::ErrorKind::UnexpectedEof, 5),
        (io::ErrorKind::PermissionDenied, 13),
        (io::ErrorKind::InvalidData, 22),
        (io::ErrorKind::TimedOut, 110),
    ] {
        assert_eq!(Error::from(io::Error::new(kind, "a text")).errno(), errno, "{kind}");
    }
}
