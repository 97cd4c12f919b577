//! A camera on a descriptor ring: a driver with several jobs in flight, and the model that it is
//! tested with.
//!
//! The device writes packets of 4 KiB into memory, back to back at 400 MB/s, through the receive
//! channel of an AXI DMA in scatter-gather mode (AMD PG021). It never waits: its FIFO holds 512
//! bytes, which is 1.3 µs, and a packet that finds it full is lost. A driver that keeps one buffer
//! with the device loses packets whatever the CPU does; one that keeps eight loses none.
//!
//! | file | what it is |
//! |---|---|
//! | `driver` | a `Driver` of a ring: descriptors of a cache line each, a register looked at first |
//! | `regs` | registers and descriptor for the driver, by PG021 and Linux |
//! | `model` | the channel and the camera, over virtual time |
//! | `line` | the camera's signal: a packet on its way, and the bytes of it that arrived |
//! | `config` | the camera's settings, and the ends of its packets |
//! | `manual` | the model's own table of registers, by AMD's embeddedsw, apart from `regs` |
//! | `packet` | the bytes of a packet, so that a test knows them |
//!
//! ```
//! use contigo::{Align, Pool, Region, Stream, sim::{SimBoard, SimDevice}};
//! use core::time::Duration;
//! use contigo_testkit::camera::{Camera, CameraConfig, CameraModel, packet};
//! let board = SimBoard::new(1);
//! let region = Region::new(board.memory(64 * 1024)?)?;
//! let frames = Pool::<9>::new(region.carve(9 * 4096, Align::PAGE)?, 4096)?;
//! let device = SimDevice::with_model(&board, board.port(), CameraModel::new(CameraConfig::default()));
//! let camera = Camera::open_simulated(device.window()?, region.carve(8 * 64, Align::LINE)?.into_buf(), 8)?;
//!
//! let mut stream: Stream<'_, _, _, 8> = Stream::new(camera, &frames, &())?;
//! stream.start()?;
//! for number in 0..100 {
//!     let frame = stream.next(Duration::from_millis(1))?.ok_or(contigo::Error::Busy)?;
//!     assert!(packet::is(number, frame.buf.view::<u8>()?));
//!     stream.give_back(frame.buf)?;
//! }
//! assert_eq!(stream.counts().ran_dry, 0);
//! # Ok::<(), contigo::Error>(())
//! ```

mod config;
mod driver;
mod line;
pub mod manual;
mod model;
pub mod packet;
pub mod regs;

pub use config::{CameraConfig, CameraCounts};
pub use driver::{Camera, PacketReport};
pub use model::CameraModel;
