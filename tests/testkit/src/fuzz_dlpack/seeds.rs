//! The cases that were written by hand. `tests/fuzz/seeds/dlpack_import/` has each as a file, for
//! the fuzzer to begin with.

use super::{Case, origin, switch};
use contigo::{
    dlpack::abi::{DlVersion, device},
    types::TensorRule,
};

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

fn seed(name: &'static str, dims: &[i64], want: Want, change: impl FnOnce(&mut Case)) -> Seed {
    let mut case = Case::floats(dims);
    change(&mut case);
    Seed { name, case, want }
}

/// All of them.
pub fn seeds() -> Vec<Seed> {
    [strides(), dimensions(), sizes(), types_and_devices(), pointers(), versions(), lent()].concat()
}

fn strides() -> Vec<Seed> {
    use Want::{NotOurs, Rule, Taken};
    let with = |name, dims: &[i64], strides: &[i64], want| {
        seed(name, dims, want, |case| case.strides = strides.to_vec())
    };
    vec![
        with("strides-transposed", &[3, 4], &[1, 3], Taken(0, 48)),
        with("strides-with-gaps", &[4], &[8], Taken(0, 100)),
        with("strides-of-0", &[1000], &[0], Taken(0, 4)),
        with("strides-of-one-element", &[2, 1, 3], &[3, 77, 1], Taken(0, 24)),
        with("strides-to-the-last-byte", &[2], &[4095], Taken(0, 16 << 10)),
        with("strides-past-the-last-byte", &[2], &[4096], NotOurs),
        with("strides-before-the-first-byte", &[2], &[-1], NotOurs),
        with("strides-below-address-0", &[2], &[i64::MIN], Rule(TensorRule::Size)),
        with("strides-beyond-all-addresses", &[2], &[i64::MAX], Rule(TensorRule::Size)),
        with(
            "strides-of-2-126-elements",
            &[1 << 60, 2],
            &[i64::MAX, i64::MIN],
            Rule(TensorRule::Size),
        ),
        seed("strides-negative", &[4], Taken(0, 16), |case| {
            (case.strides, case.data) = (vec![-1], 12)
        }),
        seed("strides-both-ways", &[2, 3], Taken(0, 48), |case| {
            (case.strides, case.data) = (vec![9, -1], 8)
        }),
        // On 32 bits the sums are of 64 all the same.
        seed(
            "strides-to-the-highest-address",
            &[2],
            if IS_64 { Rule(TensorRule::Size) } else { NotOurs },
            |case| {
                (case.origin, case.data) = (origin::NUMBER, -8);
            },
        ),
        seed("strides-that-a-contract-forbids", &[3, 4], Rule(TensorRule::Strides), |case| {
            (case.strides, case.contract) = (vec![1, 3], 2)
        }),
        seed("strides-elsewhere", &[3, 4], NotOurs, |case| {
            (case.strides, case.origin) = (vec![1, 3], origin::ELSEWHERE)
        }),
        seed("strides-null", &[3, 4], Taken(0, 48), |case| case.switches = switch::NULL_STRIDES),
    ]
}

fn dimensions() -> Vec<Seed> {
    use Want::{Rule, Taken};
    vec![
        seed("dimension-of-0", &[3, 0], Taken(0, 0), |_| ()),
        seed("dimension-of-0-no-data", &[3, 0], Taken(0, 0), |case| case.origin = origin::NULL),
        seed("dimension-of-0-elsewhere", &[0], Taken(0, 0), |case| case.origin = origin::ELSEWHERE),
        seed("dimension-of-0-any-strides", &[3, 0], Taken(0, 0), |case| {
            (case.strides, case.contract) = (vec![7, i64::MIN], 2)
        }),
        seed("dimension-of-0-misaligned", &[0], Taken(0, 0), |case| {
            (case.data, case.contract) = (1, 3)
        }),
        seed("dimension-of-0-and-2-64-elements", &[0, 1 << 62, 4], Rule(TensorRule::Size), |_| ()),
        seed("dimension-negative", &[3, -4], Rule(TensorRule::Dimension), |_| ()),
        seed("dimension-of-min", &[i64::MIN, 1], Rule(TensorRule::Dimension), |_| ()),
        seed("ndim-0", &[], Taken(0, 4), |_| ()),
        seed("ndim-0-no-shape", &[], Taken(0, 4), |case| {
            case.switches = switch::NULL_SHAPE | switch::NULL_STRIDES
        }),
        seed("ndim-8", &[1, 2, 1, 2, 1, 2, 1, 2], Taken(0, 64), |_| ()),
        seed("ndim-9", &[1; 9], Rule(TensorRule::Dims), |_| ()),
        seed("ndim-negative", &[], Rule(TensorRule::Dims), |case| case.ndim = -1),
        seed("ndim-of-max", &[1; 9], Rule(TensorRule::Dims), |case| case.ndim = i32::MAX),
        seed("ndim-of-min", &[], Rule(TensorRule::Dims), |case| case.ndim = i32::MIN),
        seed("shape-null", &[3, 4], Rule(TensorRule::NullShape), |case| {
            case.switches = switch::NULL_SHAPE
        }),
    ]
}

fn sizes() -> Vec<Seed> {
    use Want::{NotOurs, Rule, Taken};
    let most = if IS_64 { NotOurs } else { Rule(TensorRule::Size) };
    vec![
        seed("elements-2-63", &[1 << 62, 2], Rule(TensorRule::Size), |case| case.dtype.bits = 8),
        seed("elements-2-64", &[1 << 32, 1 << 32], Rule(TensorRule::Size), |_| ()),
        seed("elements-2-126", &[i64::MAX, i64::MAX], Rule(TensorRule::Size), |_| ()),
        seed("elements-2-63-less-1", &[i64::MAX], most, |case| case.dtype.bits = 8),
        seed("bytes-2-63", &[1 << 61], Rule(TensorRule::Size), |_| ()),
        seed("bytes-2-65", &[1 << 60], Rule(TensorRule::Size), |case| case.dtype.bits = 248),
        seed("region-whole", &[4096], Taken(0, 16 << 10), |_| ()),
        seed("region-and-4-bytes", &[4097], NotOurs, |_| ()),
        seed("region-last-element", &[1], Taken((16 << 10) - 4, 4), |case| {
            (case.origin, case.data) = (origin::END, -4)
        }),
        seed("region-one-byte-past", &[1], NotOurs, |case| {
            (case.origin, case.data) = (origin::END, -3)
        }),
        seed("region-one-byte-before", &[1], NotOurs, |case| case.data = -1),
        seed("region-end", &[1], NotOurs, |case| case.origin = origin::END),
        seed("region-odd-byte", &[5], Taken(4097, 20), |case| case.data = 4097),
        seed("region-aligned-page", &[1024], Taken(4096, 4096), |case| {
            (case.data, case.contract) = (4096, 4)
        }),
        seed("address-misaligned", &[4], Rule(TensorRule::Alignment), |case| {
            (case.data, case.contract) = (32, 2)
        }),
        seed("byte-offset-to-the-last-element", &[1], Taken((16 << 10) - 4, 4), |case| {
            case.byte_offset = LAST - 4
        }),
        seed("byte-offset-past-the-region", &[1], NotOurs, |case| case.byte_offset = LAST),
        seed("byte-offset-into-the-region", &[4], Taken(16, 16), |case| {
            (case.data, case.byte_offset) = (-64, 80)
        }),
        seed("byte-offset-overflows", &[1], Rule(TensorRule::Size), |case| {
            case.byte_offset = u64::MAX
        }),
        seed("byte-offset-beyond-a-pointer-of-32-bits", &[1], NotOurs, |case| {
            case.byte_offset = 1 << 33
        }),
    ]
}

fn types_and_devices() -> Vec<Seed> {
    use Want::{Rule, Taken};
    let of_type = |name, code, bits, lanes, want| {
        seed(name, &[3, 4], want, |case| {
            (case.dtype.code, case.dtype.bits, case.dtype.lanes) = (code, bits, lanes)
        })
    };
    let on = |name, device_type, contract, want| {
        seed(name, &[3, 4], want, |case| {
            (case.device.device_type, case.contract) = (device_type, contract)
        })
    };
    vec![
        of_type("lanes-4", 2, 32, 4, Rule(TensorRule::Lanes)),
        of_type("lanes-0", 2, 32, 0, Rule(TensorRule::Lanes)),
        of_type("lanes-2-and-no-bits", 2, 0, 2, Rule(TensorRule::Lanes)),
        of_type("bits-4", 0, 4, 1, Rule(TensorRule::Type)),
        of_type("bits-0", 1, 0, 1, Rule(TensorRule::Type)),
        of_type("bits-248", 255, 248, 1, Taken(0, 12 * 31)),
        on("device-metal", 8, 0, Rule(TensorRule::DeviceType)),
        on("device-0", 0, 0, Rule(TensorRule::DeviceType)),
        on("device-negative", -1, 0, Rule(TensorRule::DeviceType)),
        on("device-cuda", device::CUDA, 0, Rule(TensorRule::DeviceType)),
        on("device-cuda-host", device::CUDA_HOST, 0, Taken(0, 48)),
        on("device-cuda-host-by-contract", device::CUDA_HOST, 5, Taken(0, 48)),
        on("device-that-a-contract-forbids", device::CUDA_HOST, 1, Rule(TensorRule::DeviceType)),
        on("device-of-a-bus-address", device::EXT_DEV, 0, Rule(TensorRule::DeviceType)),
        on("device-of-a-bus-address-by-contract", device::EXT_DEV, 6, Rule(TensorRule::DeviceType)),
    ]
}

fn pointers() -> Vec<Seed> {
    use Want::{NotOurs, Rule, Taken};
    vec![
        seed("data-null", &[3, 4], Rule(TensorRule::NullData), |case| case.origin = origin::NULL),
        seed("data-null-and-an-offset", &[1], Rule(TensorRule::NullData), |case| {
            (case.origin, case.byte_offset) = (origin::NULL, 64)
        }),
        seed("data-elsewhere", &[3, 4], NotOurs, |case| case.origin = origin::ELSEWHERE),
        seed("data-elsewhere-too-long-to-copy", &[1000], NotOurs, |case| {
            case.origin = origin::ELSEWHERE
        }),
        seed("data-of-a-number", &[3, 4], NotOurs, |case| {
            (case.origin, case.data) = (origin::NUMBER, 1)
        }),
        seed("tensor-null", &[3, 4], Rule(TensorRule::NullTensor), |case| {
            case.switches = switch::NULL_TENSOR
        }),
        seed("tensor-null-legacy", &[3, 4], Rule(TensorRule::NullTensor), |case| {
            case.switches = switch::NULL_TENSOR | switch::LEGACY
        }),
        seed("deleter-null", &[3, 4], Taken(0, 48), |case| case.switches = switch::NO_DELETER),
        seed("deleter-null-legacy", &[3, 4], Taken(0, 48), |case| {
            case.switches = switch::NO_DELETER | switch::LEGACY
        }),
        seed("deleter-null-and-refused", &[-1], Rule(TensorRule::Dimension), |case| {
            case.switches = switch::NO_DELETER
        }),
    ]
}

fn versions() -> Vec<Seed> {
    use Want::{NotOurs, Rule, Taken};
    let version = |name, major, minor, want| {
        seed(name, &[3, 4], want, |case| case.version = DlVersion { major, minor })
    };
    vec![
        version("version-newer-major", 2, 0, Rule(TensorRule::MajorVersion)),
        version("version-newer-major-of-max", u32::MAX, 0, Rule(TensorRule::MajorVersion)),
        version("version-older-major", 0, 8, Rule(TensorRule::MajorVersion)),
        version("version-newer-minor", 1, 99, Taken(0, 48)),
        seed("version-legacy", &[3, 4], Taken(0, 48), |case| case.switches = switch::LEGACY),
        seed("version-legacy-elsewhere", &[3, 4], NotOurs, |case| {
            (case.switches, case.origin) = (switch::LEGACY, origin::ELSEWHERE);
        }),
        seed("flag-read-only", &[3, 4], Taken(0, 48), |case| case.flags = 1),
        seed("flags-all-but-read-only", &[3, 4], Taken(0, 48), |case| case.flags = u64::MAX - 1),
    ]
}

fn lent() -> Vec<Seed> {
    use Want::{Rule, Taken};
    let ours = |name, dims: &[i64], want, change: fn(&mut Case)| {
        seed(name, dims, want, |case| {
            case.switches = switch::OURS;
            change(case);
        })
    };
    vec![
        ours("lent", &[3, 4], Taken(4096, 48), |_| ()),
        ours("lent-legacy", &[3, 4], Taken(4096 + 60, 48), |case| {
            (case.switches, case.data) = (switch::OURS | switch::LEGACY, 60)
        }),
        ours("lent-with-byte-offset", &[1008], Taken(4096 + 64, 4032), |case| {
            (case.byte_offset, case.data) = (1, 64)
        }),
        ours("lent-empty", &[0], Taken(0, 0), |_| ()),
        ours("lent-deleter-called-twice", &[3, 4], Taken(4096, 48), |case| case.again = 1),
        ours("lent-deleter-called-four-times-legacy", &[3], Taken(4096, 12), |case| {
            (case.switches, case.again) = (switch::OURS | switch::LEGACY, 3);
        }),
        ours("lent-and-back", &[3, 4], Taken(4096 + 256, 48), |case| {
            (case.switches, case.data) = (switch::OURS | switch::INTO_BUF, 256)
        }),
        ours("lent-and-back-deleter-called-twice", &[3, 4], Taken(4096, 48), |case| {
            (case.switches, case.again) = (switch::OURS | switch::INTO_BUF, 1);
        }),
        ours("lent-too-long", &[1025], Rule(TensorRule::Size), |_| ()),
        ours("lent-misaligned", &[4], Rule(TensorRule::Alignment), |case| {
            (case.data, case.contract) = (64, 3)
        }),
        ours("lent-read-only-legacy", &[3, 4], Rule(TensorRule::Flags), |case| {
            (case.switches, case.flags) = (switch::OURS | switch::LEGACY, 1)
        }),
        ours("lent-read-only", &[3, 4], Taken(4096, 48), |case| case.flags = 1),
        seed("back-of-another-buffer", &[3, 4], Taken(0, 48), |case| {
            case.switches = switch::INTO_BUF
        }),
        seed("back-of-a-pointer-into-it", &[3, 4], Taken(4100, 48), |case| {
            (case.switches, case.data) = (switch::INTO_BUF, 4100)
        }),
        seed("back-across-its-end", &[2], Taken(8188, 8), |case| {
            (case.switches, case.data) = (switch::INTO_BUF, 8188)
        }),
    ]
}
