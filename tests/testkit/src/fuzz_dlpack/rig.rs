#![allow(
    unsafe_code,
    reason = "memory is copied from where a tensor says, and a deleter is called too often"
)]
//! A region, and the import of one case.

use super::model::{BEYOND, Told, Verdict, wrong};
use super::theirs::Theirs;
use super::{Case, origin, switch};
use contigo::dlpack::abi::{
    DlDevice, DlManagedTensor, DlManagedTensorVersioned, DlVersion, MAJOR, MINOR, READ_ONLY, device,
};
use contigo::dlpack::{
    DataType, Foreign, Imported, Lendable, Lent, Shape, TensorSpec, TensorTable,
};
use contigo::sim::SimBoard;
use contigo::types::{Refused, TensorRule};
use contigo::{Align, CpuBuf, DevAddr, Error, Pool, Region, Result};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::{fmt, ptr};

const REGION_BYTES: usize = 16 << 10;
const SLOT_BYTES: usize = 4 << 10;
const ELSEWHERE_BYTES: usize = 4 << 10;
const COPY_BYTES: usize = 256;

/// A region of the simulated board whose second quarter is a pool of one buffer, memory elsewhere,
/// and a buffer on another board, to copy to. Made once: it leaks.
pub struct Rig {
    board: SimBoard,
    region: Region,
    /// The region's first byte, for the CPU and for the board's port.
    first: NonNull<u8>,
    base: DevAddr,
    pool: Pool,
    table: &'static TensorTable<1>,
    elsewhere: *mut u8,
    copies: RefCell<CpuBuf>,
    other: SimBoard,
}

/// The answer for a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// First byte, from the beginning of the region, and length.
    pub import: Result<(usize, usize)>,
    /// How many bytes were copied; `None`: not tried, because there is nothing to read where the
    /// tensor says.
    pub copy: Option<Result<usize>>,
    /// Did its buffer come back by `into_buf`? `None`: not tried.
    pub back: Option<bool>,
    /// How often its deleter was called too often.
    pub misuses: usize,
}

/// The bytes of the region, and those elsewhere.
const fn byte_at(offset: usize, is_elsewhere: bool) -> u8 {
    (offset.wrapping_mul(31) >> 3) as u8 ^ if is_elsewhere { 0x5A } else { 0 }
}

/// Whole pages that are leaked, and need no kernel, so that Miri can run this.
fn pages(len_bytes: usize) -> &'static mut [u8] {
    let all = vec![0_u8; len_bytes + 4096].leak();
    let skip = all.as_ptr().align_offset(4096);
    &mut all[skip..][..len_bytes]
}

fn memory(len_bytes: usize) -> (SimBoard, Region) {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory_over(pages(4 * len_bytes)).unwrap()).unwrap();
    (board, region)
}

impl Default for Rig {
    fn default() -> Self {
        Self::new()
    }
}

impl Rig {
    /// A rig.
    #[must_use]
    pub fn new() -> Self {
        let ((board, region), (other, copies)) = (memory(REGION_BYTES), memory(COPY_BYTES));
        let write = |bytes: &mut [u8], offset, is_elsewhere| {
            for (byte, at) in bytes.iter_mut().zip(offset..) {
                *byte = byte_at(at, is_elsewhere);
            }
        };
        let fill = |buf: &mut CpuBuf| {
            let offset = buf.offset_bytes();
            write(buf.view_mut().unwrap(), offset, false);
        };
        let mut front = region.alloc(SLOT_BYTES, Align::DLPACK).unwrap();
        fill(&mut front);
        let first = front.view::<u8>().unwrap().as_ptr();
        let base = region.dev_addr_of(&board.port(), first, 1).unwrap();
        let first = region.host_ptr_of(&board.port(), base).unwrap();
        let pool = region.pool(1, SLOT_BYTES).unwrap();
        fill(&mut pool.take().unwrap());
        fill(&mut region.alloc(region.free_bytes(), Align::LINE).unwrap());
        let elsewhere = pages(ELSEWHERE_BYTES);
        write(elsewhere, 0, true);
        Self {
            board,
            region,
            first,
            base,
            pool,
            table: Box::leak(Box::new(TensorTable::new())),
            elsewhere: elsewhere.as_mut_ptr(),
            copies: RefCell::new(copies.alloc(COPY_BYTES, Align::LINE).unwrap()),
            other,
        }
    }

    /// Imports what `bytes` say.
    ///
    /// # Panics
    /// A rule was not kept. An accepted import is not where the tensor says, or not in the region.
    /// A refused one breaks no rule, or another one. The deleter was not called once, or something
    /// is lost.
    pub fn run(&self, bytes: &[u8]) -> Outcome {
        let case = Case::from_bytes(bytes);
        let outcome = if case.is(switch::OURS) { self.ours(&case) } else { self.theirs(&case) };
        assert_eq!((self.pool.taken(), self.table.taken()), (0, 0), "lost");
        outcome
    }

    fn extent(&self) -> (u64, usize) {
        (self.first.addr().get() as u64, REGION_BYTES)
    }

    fn data(&self, case: &Case) -> *mut u8 {
        let first = self.first.as_ptr();
        match case.origin % 5 {
            origin::FIRST => first.wrapping_offset(case.data as isize),
            origin::END => first.wrapping_add(REGION_BYTES).wrapping_offset(case.data as isize),
            origin::ELSEWHERE => self.elsewhere.wrapping_offset(case.data as isize),
            origin::NUMBER => ptr::without_provenance_mut(case.data as usize),
            _ => ptr::null_mut(),
        }
    }

    /// A framework's tensor.
    fn theirs(&self, case: &Case) -> Outcome {
        let data = self.data(case);
        let verdict = Told { case, data: data.addr() as u64 }.judge(self.extent());
        let theirs = Theirs::new(case, data);
        let deleters = usize::from(!case.is(switch::NO_DELETER));
        let foreign = match theirs.give() {
            Ok(foreign) => foreign,
            Err(error) => {
                assert!(case.is(switch::NULL_TENSOR), "{error:?}");
                assert_eq!((error, theirs.deleted()), (wrong(TensorRule::NullTensor, 0, 1), 0));
                return Outcome { import: Err(error), copy: None, back: None, misuses: 0 };
            }
        };
        assert!(!case.is(switch::NULL_TENSOR), "null was taken");
        described(case, &foreign, &verdict);
        let copy = self.copied(&foreign, &verdict);
        assert_eq!(theirs.deleted(), 0, "deleted too early");
        let (import, back) = match Imported::new(&self.region, foreign, &case.contract()) {
            Ok(imported) => {
                let span = self.inside(case, &imported, &verdict);
                assert_eq!(theirs.deleted(), 0, "deleted too early");
                let back = case.is(switch::INTO_BUF).then(|| {
                    // A buffer that the tensor may or may not be in.
                    let spec = TensorSpec::new(DataType::U8, Shape::new(&[1]).unwrap());
                    let lent = self.table.lend(self.pool.take().unwrap(), &spec).unwrap();
                    is_back(imported.into_buf(lent), span, (SLOT_BYTES, SLOT_BYTES))
                });
                (Ok(span), back)
            }
            Err(refused) => {
                let (error, returned) = refused.into_parts();
                assert_one_of(error, &verdict.imported);
                assert_eq!(theirs.deleted(), 0, "deleted, and given back");
                described(case, &returned, &verdict);
                (Err(error), None)
            }
        };
        assert_eq!(theirs.deleted(), deleters, "calls of the deleter");
        Outcome { import, copy, back, misuses: 0 }
    }

    /// The import is as the tensor says, lies in the region, and has the bus address of that place.
    fn inside(&self, case: &Case, imported: &Imported, verdict: &Verdict) -> (usize, usize) {
        let span = (imported.offset_bytes(), imported.len_bytes());
        match &verdict.imported {
            Ok(right) => assert_eq!(span, *right, "another extent"),
            Err(broken) => panic!("taken as {span:?}, and it breaks {broken:?}"),
        }
        assert!(span.0 <= REGION_BYTES && span.1 <= REGION_BYTES - span.0, "{span:?} is outside");
        assert_eq!((imported.shape().dims(), imported.dtype()), (&*case.shape, case.dtype));
        assert_eq!(imported.is_read_only(), is_read_only(case));
        assert_eq!(imported.dev_addr(&self.board.port()), Ok(DevAddr(self.base.0 + span.0 as u64)));
        let elsewhere = self.other.port();
        let wrong_bus = Error::WrongBus { port: elsewhere.name, memory: self.board.bus() };
        assert_eq!(imported.dev_addr(&elsewhere), Err(wrong_bus));
        assert!(!format!("{imported:?}").is_empty());
        span
    }

    /// Copies, where all that is read is there to be read.
    fn copied(&self, foreign: &Foreign, verdict: &Verdict) -> Option<Result<usize>> {
        let mut buf = self.copies.borrow_mut();
        let end = verdict.described.as_ref().map_or(0, |seen| seen.elements * seen.element_bytes);
        let (right, from) = match &verdict.described {
            Err(broken) => (Err(broken.clone()), None),
            Ok(seen) if !seen.against_copies().is_empty() => (Err(seen.against_copies()), None),
            Ok(_) if end == 0 => (Ok(0), None),
            Ok(seen) => {
                let from = self.readable(seen.addr, end)?;
                let refusal = Error::OutOfRange { start: 0, end, len_bytes: COPY_BYTES };
                (if end <= COPY_BYTES { Ok(end) } else { Err(vec![refusal]) }, Some(from))
            }
        };
        buf.view_mut::<u8>().unwrap().fill(0xEE);
        // SAFETY: by the verdict, either it is refused or empty, or all of it lies in the region or
        // elsewhere, which nothing writes.
        let found = unsafe { foreign.copy_to(&mut buf) };
        match (&found, &right) {
            (Ok(found), Ok(right)) => assert_eq!(found, right, "bytes copied"),
            (Err(error), _) => assert_one_of(*error, &right),
            (Ok(found), Err(broken)) => panic!("{found} bytes copied of what breaks {broken:?}"),
        }
        let copied = *found.as_ref().unwrap_or(&0);
        let (copy, rest) = buf.view::<u8>().unwrap().split_at(copied);
        if let Some((offset, is_elsewhere)) = from {
            let mut bytes = copy.iter().zip(offset..);
            assert!(bytes.all(|(byte, at)| *byte == byte_at(at, is_elsewhere)), "other bytes");
        }
        assert!(rest.iter().all(|byte| *byte == 0xEE), "more bytes");
        Some(found)
    }

    /// Where these bytes lie in the region, or elsewhere.
    fn readable(&self, addr: u64, len_bytes: usize) -> Option<(usize, bool)> {
        let within = |first: usize, have: usize| {
            let offset = usize::try_from(addr.checked_sub(first as u64)?).ok()?;
            (offset <= have && len_bytes <= have - offset).then_some(offset)
        };
        let here = within(self.first.addr().get(), REGION_BYTES).map(|offset| (offset, false));
        here.or_else(|| within(self.elsewhere.addr(), ELSEWHERE_BYTES).map(|offset| (offset, true)))
    }

    /// One of our own tensors, that comes back as a framework hands it on, and whose deleter the
    /// framework calls too often.
    fn ours(&self, case: &Case) -> Outcome {
        let mut outcome = Outcome { import: Err(BEYOND), copy: None, back: None, misuses: 0 };
        // The tensor that will be lent, as its consumer receives it.
        let at = case.data.rem_euclid(SLOT_BYTES as i64) as usize;
        let told = Case {
            switches: case.switches & !switch::NULL_SHAPE | switch::NULL_STRIDES,
            version: DlVersion { major: MAJOR, minor: MINOR },
            device: DlDevice { device_type: device::CPU, device_id: 0 },
            ndim: case.shape.len() as i32,
            byte_offset: 0,
            ..case.clone()
        };
        let data = self.first.addr().get() + SLOT_BYTES + at;
        let verdict = Told { case: &told, data: data as u64 }.judge(self.extent());
        let shape = match Shape::new(&told.shape) {
            Ok(shape) => shape,
            Err(error) => {
                assert_one_of(error, &verdict.imported);
                return Outcome { import: Err(error), ..outcome };
            }
        };
        let spec = TensorSpec {
            read_only: case.flags & READ_ONLY != 0,
            offset: case.offset(),
            contract: case.contract(),
            ..TensorSpec::new(case.dtype, shape)
        };
        let room = SLOT_BYTES - at;
        let len_bytes =
            verdict.described.as_ref().map_or(0, |seen| seen.elements * seen.element_bytes);
        let buf = self.pool.take().unwrap().slice(at..).unwrap();
        let mut lent = match self.table.lend(buf, &spec) {
            Ok(lent) => lent,
            Err(Refused { error, .. }) => {
                let too_long = wrong(TensorRule::Size, len_bytes as u64, room as u64);
                if len_bytes <= room || error != too_long {
                    assert_one_of(error, &verdict.imported);
                }
                return Outcome { import: Err(error), ..outcome };
            }
        };
        assert!(len_bytes <= room, "lent beyond its buffer");
        let is_unsayable = case.is(switch::LEGACY) && spec.read_only;
        let given = match Given::take(&mut lent, case.is(switch::LEGACY)) {
            Ok(given) => given,
            Err(error) => {
                assert_eq!((error, is_unsayable), (wrong(TensorRule::Flags, READ_ONLY, 0), true));
                drop(lent.take_back().unwrap());
                return Outcome { import: Err(error), ..outcome };
            }
        };
        assert!(!is_unsayable, "its consumer is not told that it may not write");
        let imported = Imported::new(&self.region, given.foreign(), &case.contract()).unwrap();
        let span = self.inside(&told, &imported, &verdict);
        outcome.import = Ok(span);
        assert!(lent.is_out());
        let misuses = self.table.misuses();
        let buf = if case.is(switch::INTO_BUF) {
            outcome.back = Some(is_back(imported.into_buf(lent), span, (SLOT_BYTES + at, room)));
            None
        } else {
            drop(imported);
            assert!(!lent.is_out(), "the deleter was not called");
            Some(lent)
        };
        outcome.misuses = usize::from(case.again % 4);
        for _ in 0..outcome.misuses {
            given.delete();
        }
        let counted = self.table.misuses() - misuses;
        assert_eq!(counted, outcome.misuses, "calls too many of the deleter");
        if let Some(lent) = buf {
            let buf = lent.take_back().unwrap();
            assert_eq!((buf.offset_bytes(), buf.len_bytes()), (SLOT_BYTES + at, room));
        }
        outcome
    }
}

impl fmt::Debug for Rig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rig").field("base", &self.base).finish_non_exhaustive()
    }
}

/// A tensor of ours that a framework has.
enum Given {
    Versioned(NonNull<DlManagedTensorVersioned>),
    Legacy(NonNull<DlManagedTensor>),
}

impl Given {
    fn take<B: Lendable>(lent: &mut Lent<B>, legacy: bool) -> Result<Self> {
        if legacy {
            lent.legacy_tensor().map(Self::Legacy)
        } else {
            lent.tensor().map(Self::Versioned)
        }
    }

    fn foreign(&self) -> Foreign {
        // SAFETY: given out just now, and to no other consumer.
        unsafe {
            match self {
                Self::Versioned(tensor) => Foreign::from_versioned(tensor.as_ptr()),
                Self::Legacy(tensor) => Foreign::from_legacy(tensor.as_ptr()),
            }
        }
        .unwrap()
    }

    /// Calls the deleter once more.
    fn delete(&self) {
        // SAFETY: the tensor lies in a table that is never dropped, and the table documents that a
        // call too many changes nothing.
        unsafe {
            match self {
                Self::Versioned(tensor) => (tensor.as_ref().deleter.unwrap())(tensor.as_ptr()),
                Self::Legacy(tensor) => (tensor.as_ref().deleter.unwrap())(tensor.as_ptr()),
            }
        }
    }
}

const fn is_read_only(case: &Case) -> bool {
    // Bit 0; the form before DLPack 1.0 has no flags.
    !case.is(switch::LEGACY) && case.flags & 1 != 0
}

fn assert_one_of<T>(error: Error, right: &Result<T, Vec<Error>>) {
    match right {
        Err(broken) => assert!(broken.contains(&error), "{error:?}, and not one of {broken:?}"),
        Ok(_) => panic!("{error:?}, and nothing is wrong"),
    }
}

/// The tensor's description is what the verdict says.
fn described(case: &Case, foreign: &Foreign, verdict: &Verdict) {
    let what = match foreign.describe() {
        Ok(what) => what,
        Err(error) => return assert_one_of(error, &verdict.described),
    };
    let Ok(seen) = &verdict.described else {
        panic!("{what:?}, and it breaks {:?}", verdict.described)
    };
    assert_eq!(
        (what.dtype, what.shape.dims(), what.shape.elements()),
        (case.dtype, case.shape.as_slice(), seen.elements)
    );
    assert_eq!(
        (what.place, what.addr, what.read_only),
        (seen.place, seen.addr, is_read_only(case))
    );
    assert_eq!(what.strides(), seen.strided.map(|_| case.strides.as_slice()));
    assert_eq!(what.extent(), seen.extent.ok_or(BEYOND));
}

/// The buffer came back as the tensor's part of it, or is lent still, because the tensor is not in
/// it.
fn is_back(
    back: Result<CpuBuf, Refused<Lent<CpuBuf>>>,
    span: (usize, usize),
    own: (usize, usize),
) -> bool {
    let is_inside = own.0 <= span.0 && span.0 + span.1 <= own.0 + own.1;
    match back {
        Ok(buf) => {
            assert!(is_inside, "{span:?} is not in {own:?}");
            assert_eq!((buf.offset_bytes(), buf.len_bytes()), span);
        }
        Err(refused) => {
            let (error, returned) = refused.into_parts();
            assert!(!is_inside, "{span:?} is in {own:?}");
            assert_eq!(error, Error::NotOurs { addr: span.0 as u64, len_bytes: span.1 });
            drop(returned.take_back().unwrap());
        }
    }
    is_inside
}
