//! Memory whose handles own it: no lifetime.
//!
//! A [`Region`] is one block of memory, a [`Pool`] equal slots of it, a [`CpuBuf`] some bytes. All
//! of them are `'static + Send`, may lie in one structure, move to another thread, and be dropped
//! in any order. They share a *control block* that counts them. The last one to go drops the
//! backend, which unmaps the memory, and frees the control block. A pool has a control block of its
//! own, for its slots, and counts once in the region's.
//!
//! Three rules make it sound, as everywhere in this crate:
//!
//! 1. Views exist only on a [`CpuBuf`], addresses only on the device's side. A hand-over consumes
//!    the one and makes the other.
//! 2. What is forgotten, or what a device still has, stays counted. It is leaked, never freed. One
//!    forgotten buffer keeps ALL of its region, without an
//!    [`Event::Leak`](crate::trace::Event::Leak): the region cannot know which of its handles will
//!    never be dropped.
//! 3. There is no heap. A region's control block lies in pages from the kernel, as many as its
//!    [`Limits`] ask for, and so does a pool's; without a kernel the program gives the memory.
//!
//! A [`Queue`](crate::Queue) runs jobs with the buffers, on any driver.
//!
//! ```
//! use contigo::{Align, Queue, Region};
//! use contigo::sim::{SimDevice, zdma::ZdmaModel, SimBoard};
//! use core::time::Duration;
//!
//! let board = SimBoard::new(7);
//! let region = Region::new(board.memory(256 * 1024)?)?;
//! let device = SimDevice::<ZdmaModel>::new(&board, board.port());
//! let mut copy = Queue::new(device.window()?.simple()?, 1)?;
//!
//! let frames = region.pool(8, 4096)?;
//! let (mut input, output) = (frames.take()?, region.alloc(4096, Align::LINE)?);
//! input.view_at_mut::<i32>(..128)?.fill(2);
//! let operands = [input.to_device(..128), output.from_device(..128)];
//! let [_, output] = copy.run(operands, &[], Duration::from_millis(20))?.buffers;
//! assert_eq!(output.view_at::<i32>(..128)?, [2; 32]);
//! # Ok::<(), contigo::Error>(())
//! ```

mod alloc;
pub(crate) mod bitmap;
mod control;
mod handle;
mod limits;
mod memory;
mod parts;
mod pool;
mod pool_state;
mod returned;
mod slots;
pub(crate) mod tests;
pub(crate) mod tlsf;

use crate::types::count;

pub use handle::Region;
pub use limits::Limits;
pub(crate) use memory::{Given, Memory, wherever};
pub use pool::Pool;
