//! The cases that were written by hand. `tests/fuzz/seeds/dlpack_import/` has each as a file, for
//! the fuzzer to begin with.

use super::{Case, origin, switch};
use Want::{NotOurs, Rule, Taken};
use contigo::dlpack::DataType;
use contigo::dlpack::abi::{DlDevice, DlVersion, device};
use contigo::types::TensorRule::{self, Size};

/// The required result of a seed's import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// First byte, from the beginning of the region, and length.
    Taken(usize, usize),
    /// `Error::Tensor`.
    Rule(TensorRule),
    /// `Error::NotOurs`.
    NotOurs,
}

/// A case with a name.
#[derive(Clone, Debug)]
pub struct Seed {
    /// Its file.
    pub name: &'static str,
    /// What it is.
    pub case: Case,
    /// Its result.
    pub want: Want,
}

const LAST: u64 = 16 << 10;
const IS_64: bool = cfg!(target_pointer_width = "64");
const END: u8 = origin::END;
const ELSEWHERE: u8 = origin::ELSEWHERE;
const NUMBER: u8 = origin::NUMBER;

/// The changes of a case with which nothing is wrong, of floats at the region's first byte.
impl Case {
    fn strides(self, strides: &[i64]) -> Self {
        Self { strides: strides.to_vec(), ..self }
    }
    fn at(self, data: i64) -> Self {
        Self { data, ..self }
    }
    fn origin(self, origin: u8, data: i64) -> Self {
        Self { origin, data, ..self }
    }
    fn by(self, contract: u8) -> Self {
        Self { contract, ..self }
    }
    fn switches(self, switches: u8) -> Self {
        Self { switches, ..self }
    }
    fn byte_offset(self, byte_offset: u64) -> Self {
        Self { byte_offset, ..self }
    }
    fn bits(self, bits: u8) -> Self {
        Self { dtype: DataType { bits, ..self.dtype }, ..self }
    }
    fn ndim(self, ndim: i32) -> Self {
        Self { ndim, ..self }
    }
    fn flags(self, flags: u64) -> Self {
        Self { flags, ..self }
    }
    fn again(self, again: u8) -> Self {
        Self { again, ..self }
    }
}

/// All of them.
pub fn seeds() -> Vec<Seed> {
    [strides(), dimensions(), sizes(), types(), devices(), pointers(), versions(), lent()]
        .concat()
        .into_iter()
        .map(|(name, case, want)| Seed { name, case, want })
        .collect()
}

type Row = (&'static str, Case, Want);

fn strides() -> Vec<Row> {
    let floats = Case::floats;
    // On 32 bits the sums are of 64 all the same.
    let highest = if IS_64 { Rule(Size) } else { NotOurs };
    let huge = [i64::MAX, i64::MIN];
    vec![
        ("strides-transposed", floats(&[3, 4]).strides(&[1, 3]), Taken(0, 48)),
        ("strides-with-gaps", floats(&[4]).strides(&[8]), Taken(0, 100)),
        ("strides-of-0", floats(&[1000]).strides(&[0]), Taken(0, 4)),
        ("strides-of-one-element", floats(&[2, 1, 3]).strides(&[3, 77, 1]), Taken(0, 24)),
        ("strides-to-the-last-byte", floats(&[2]).strides(&[4095]), Taken(0, 16 << 10)),
        ("strides-past-the-last-byte", floats(&[2]).strides(&[4096]), NotOurs),
        ("strides-before-the-first-byte", floats(&[2]).strides(&[-1]), NotOurs),
        ("strides-below-address-0", floats(&[2]).strides(&[i64::MIN]), Rule(Size)),
        ("strides-beyond-all-addresses", floats(&[2]).strides(&[i64::MAX]), Rule(Size)),
        ("strides-of-2-126-elements", floats(&[1 << 60, 2]).strides(&huge), Rule(Size)),
        ("strides-negative", floats(&[4]).strides(&[-1]).at(12), Taken(0, 16)),
        ("strides-both-ways", floats(&[2, 3]).strides(&[9, -1]).at(8), Taken(0, 48)),
        ("strides-to-the-highest-address", floats(&[2]).origin(NUMBER, -8), highest),
        (
            "strides-that-a-contract-forbids",
            floats(&[3, 4]).strides(&[1, 3]).by(2),
            Rule(TensorRule::Strides),
        ),
        ("strides-elsewhere", floats(&[3, 4]).strides(&[1, 3]).origin(ELSEWHERE, 0), NotOurs),
        ("strides-null", floats(&[3, 4]).switches(switch::NULL_STRIDES), Taken(0, 48)),
    ]
}

fn dimensions() -> Vec<Row> {
    let floats = Case::floats;
    let (neither, dims) = (switch::NULL_SHAPE | switch::NULL_STRIDES, Rule(TensorRule::Dims));
    vec![
        ("dimension-of-0", floats(&[3, 0]), Taken(0, 0)),
        ("dimension-of-0-no-data", floats(&[3, 0]).origin(origin::NULL, 0), Taken(0, 0)),
        ("dimension-of-0-elsewhere", floats(&[0]).origin(ELSEWHERE, 0), Taken(0, 0)),
        ("dimension-of-0-any-strides", floats(&[3, 0]).strides(&[7, i64::MIN]).by(2), Taken(0, 0)),
        ("dimension-of-0-misaligned", floats(&[0]).at(1).by(3), Taken(0, 0)),
        ("dimension-of-0-and-2-64-elements", floats(&[0, 1 << 62, 4]), Rule(Size)),
        ("dimension-negative", floats(&[3, -4]), Rule(TensorRule::Dimension)),
        ("dimension-of-min", floats(&[i64::MIN, 1]), Rule(TensorRule::Dimension)),
        ("ndim-0", floats(&[]), Taken(0, 4)),
        ("ndim-0-no-shape", floats(&[]).switches(neither), Taken(0, 4)),
        ("ndim-8", floats(&[1, 2, 1, 2, 1, 2, 1, 2]), Taken(0, 64)),
        ("ndim-9", floats(&[1; 9]), dims),
        ("ndim-negative", floats(&[]).ndim(-1), dims),
        ("ndim-of-max", floats(&[1; 9]).ndim(i32::MAX), dims),
        ("ndim-of-min", floats(&[]).ndim(i32::MIN), dims),
        ("shape-null", floats(&[3, 4]).switches(switch::NULL_SHAPE), Rule(TensorRule::NullShape)),
    ]
}

fn sizes() -> Vec<Row> {
    let floats = Case::floats;
    let (most, misaligned) =
        (if IS_64 { NotOurs } else { Rule(Size) }, Rule(TensorRule::Alignment));
    let last = Taken((16 << 10) - 4, 4);
    vec![
        ("elements-2-63", floats(&[1 << 62, 2]).bits(8), Rule(Size)),
        ("elements-2-64", floats(&[1 << 32, 1 << 32]), Rule(Size)),
        ("elements-2-126", floats(&[i64::MAX, i64::MAX]), Rule(Size)),
        ("elements-2-63-less-1", floats(&[i64::MAX]).bits(8), most),
        ("bytes-2-63", floats(&[1 << 61]), Rule(Size)),
        ("bytes-2-65", floats(&[1 << 60]).bits(248), Rule(Size)),
        ("region-whole", floats(&[4096]), Taken(0, 16 << 10)),
        ("region-and-4-bytes", floats(&[4097]), NotOurs),
        ("region-last-element", floats(&[1]).origin(END, -4), last),
        ("region-one-byte-past", floats(&[1]).origin(END, -3), NotOurs),
        ("region-one-byte-before", floats(&[1]).at(-1), NotOurs),
        ("region-end", floats(&[1]).origin(END, 0), NotOurs),
        ("region-odd-byte", floats(&[5]).at(4097), Taken(4097, 20)),
        ("region-aligned-page", floats(&[1024]).at(4096).by(4), Taken(4096, 4096)),
        ("address-misaligned", floats(&[4]).at(32).by(2), misaligned),
        ("byte-offset-to-the-last-element", floats(&[1]).byte_offset(LAST - 4), last),
        ("byte-offset-past-the-region", floats(&[1]).byte_offset(LAST), NotOurs),
        ("byte-offset-into-the-region", floats(&[4]).at(-64).byte_offset(80), Taken(16, 16)),
        ("byte-offset-overflows", floats(&[1]).byte_offset(u64::MAX), Rule(Size)),
        ("byte-offset-beyond-a-pointer-of-32-bits", floats(&[1]).byte_offset(1 << 33), NotOurs),
    ]
}

fn types() -> Vec<Row> {
    let of =
        |code, bits, lanes| Case { dtype: DataType { code, bits, lanes }, ..Case::floats(&[3, 4]) };
    vec![
        ("lanes-4", of(2, 32, 4), Rule(TensorRule::Lanes)),
        ("lanes-0", of(2, 32, 0), Rule(TensorRule::Lanes)),
        ("lanes-2-and-no-bits", of(2, 0, 2), Rule(TensorRule::Lanes)),
        ("bits-4", of(0, 4, 1), Rule(TensorRule::Type)),
        ("bits-0", of(1, 0, 1), Rule(TensorRule::Type)),
        ("bits-248", of(255, 248, 1), Taken(0, 12 * 31)),
    ]
}

fn devices() -> Vec<Row> {
    let on = |device_type| Case {
        device: DlDevice { device_type, device_id: 0 },
        ..Case::floats(&[3, 4])
    };
    let wrong = Rule(TensorRule::DeviceType);
    vec![
        ("device-metal", on(8), wrong),
        ("device-0", on(0), wrong),
        ("device-negative", on(-1), wrong),
        ("device-cuda", on(device::CUDA), wrong),
        ("device-cuda-host", on(device::CUDA_HOST), Taken(0, 48)),
        ("device-cuda-host-by-contract", on(device::CUDA_HOST).by(5), Taken(0, 48)),
        ("device-that-a-contract-forbids", on(device::CUDA_HOST).by(1), wrong),
        ("device-of-a-bus-address", on(device::EXT_DEV), wrong),
        ("device-of-a-bus-address-by-contract", on(device::EXT_DEV).by(6), wrong),
    ]
}

fn pointers() -> Vec<Row> {
    let (floats, no_data) = (Case::floats, Rule(TensorRule::NullData));
    let (legacy, no_deleter) = (switch::LEGACY, switch::NO_DELETER);
    let no_tensor = |more| floats(&[3, 4]).switches(switch::NULL_TENSOR | more);
    let null = Rule(TensorRule::NullTensor);
    vec![
        ("data-null", floats(&[3, 4]).origin(origin::NULL, 0), no_data),
        ("data-null-and-an-offset", floats(&[1]).origin(origin::NULL, 0).byte_offset(64), no_data),
        ("data-elsewhere", floats(&[3, 4]).origin(ELSEWHERE, 0), NotOurs),
        ("data-elsewhere-too-long-to-copy", floats(&[1000]).origin(ELSEWHERE, 0), NotOurs),
        ("data-of-a-number", floats(&[3, 4]).origin(NUMBER, 1), NotOurs),
        ("tensor-null", no_tensor(0), null),
        ("tensor-null-legacy", no_tensor(legacy), null),
        ("deleter-null", floats(&[3, 4]).switches(no_deleter), Taken(0, 48)),
        ("deleter-null-legacy", floats(&[3, 4]).switches(no_deleter | legacy), Taken(0, 48)),
        (
            "deleter-null-and-refused",
            floats(&[-1]).switches(no_deleter),
            Rule(TensorRule::Dimension),
        ),
    ]
}

fn versions() -> Vec<Row> {
    let floats = || Case::floats(&[3, 4]);
    let version = |major, minor| Case { version: DlVersion { major, minor }, ..floats() };
    let (legacy, wrong) = (switch::LEGACY, Rule(TensorRule::MajorVersion));
    vec![
        ("version-newer-major", version(2, 0), wrong),
        ("version-newer-major-of-max", version(u32::MAX, 0), wrong),
        ("version-older-major", version(0, 8), wrong),
        ("version-newer-minor", version(1, 99), Taken(0, 48)),
        ("version-legacy", floats().switches(legacy), Taken(0, 48)),
        ("version-legacy-elsewhere", floats().switches(legacy).origin(ELSEWHERE, 0), NotOurs),
        ("flag-read-only", floats().flags(1), Taken(0, 48)),
        ("flags-all-but-read-only", floats().flags(u64::MAX - 1), Taken(0, 48)),
    ]
}

fn lent() -> Vec<Row> {
    let (legacy, into_buf) = (switch::LEGACY, switch::INTO_BUF);
    let ours = |dims: &[i64], more| Case::floats(dims).switches(switch::OURS | more);
    let back = |dims: &[i64]| Case::floats(dims).switches(into_buf);
    let misaligned = Rule(TensorRule::Alignment);
    vec![
        ("lent", ours(&[3, 4], 0), Taken(4096, 48)),
        ("lent-legacy", ours(&[3, 4], legacy).at(60), Taken(4096 + 60, 48)),
        ("lent-with-byte-offset", ours(&[1008], 0).byte_offset(1).at(64), Taken(4096 + 64, 4032)),
        ("lent-empty", ours(&[0], 0), Taken(0, 0)),
        ("lent-deleter-called-twice", ours(&[3, 4], 0).again(1), Taken(4096, 48)),
        ("lent-deleter-called-four-times-legacy", ours(&[3], legacy).again(3), Taken(4096, 12)),
        ("lent-and-back", ours(&[3, 4], into_buf).at(256), Taken(4096 + 256, 48)),
        ("lent-and-back-deleter-called-twice", ours(&[3, 4], into_buf).again(1), Taken(4096, 48)),
        ("lent-too-long", ours(&[1025], 0), Rule(Size)),
        ("lent-misaligned", ours(&[4], 0).at(64).by(3), misaligned),
        ("lent-read-only-legacy", ours(&[3, 4], legacy).flags(1), Rule(TensorRule::Flags)),
        ("lent-read-only", ours(&[3, 4], 0).flags(1), Taken(4096, 48)),
        ("back-of-another-buffer", back(&[3, 4]), Taken(0, 48)),
        ("back-of-a-pointer-into-it", back(&[3, 4]).at(4100), Taken(4100, 48)),
        ("back-across-its-end", back(&[2]).at(8188), Taken(8188, 8)),
    ]
}
