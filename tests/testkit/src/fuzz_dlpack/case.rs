//! Which byte is which field.

use contigo::dlpack::abi::{DlDevice, DlVersion, MAJOR, MINOR, device};
use contigo::dlpack::{ByteOffset, Contract, DataType, Place};

/// Bits of a case's switches.
pub mod switch {
    /// The form before DLPack 1.0.
    pub const LEGACY: u8 = 1;
    /// There is no deleter.
    pub const NO_DELETER: u8 = 1 << 1;
    /// The pointer to the shape is null.
    pub const NULL_SHAPE: u8 = 1 << 2;
    /// The pointer to the strides is null.
    pub const NULL_STRIDES: u8 = 1 << 3;
    /// The pointer to the tensor is null.
    pub const NULL_TENSOR: u8 = 1 << 4;
    /// The tensor does not come from a framework: it is one that was lent.
    pub const OURS: u8 = 1 << 5;
    /// The import is given to `into_buf`, and not only dropped.
    pub const INTO_BUF: u8 = 1 << 6;
}

/// The base of [`Case::data`].
pub mod origin {
    /// There is no data.
    pub const NULL: u8 = 0;
    /// The region's first byte.
    pub const FIRST: u8 = 1;
    /// The byte after its last.
    pub const END: u8 = 2;
    /// Other memory of this program.
    pub const ELSEWHERE: u8 = 3;
    /// Nothing: it is the number.
    pub const NUMBER: u8 = 4;
}

/// As many entries as a shape gets: one more than a tensor may have. A tensor that says that it has
/// more is refused before they are read.
const MOST: usize = 9;

/// The contracts that can refuse a tensor, besides the rules of every tensor.
const CONTRACTS: [Contract; 8] = [
    Contract::ANY,
    Contract::NUMPY,
    Contract::TVM,
    Contract::DLPACK,
    Contract { align_bytes: 4096, ..Contract::ANY },
    Contract { align_bytes: 0, contiguous: true, place: Some(Place::CudaHost) },
    Contract { align_bytes: 1, contiguous: false, place: Some(Place::BusAddress) },
    Contract { align_bytes: usize::MAX, contiguous: true, place: None },
];

/// A tensor, and what is done with it: each field from the bytes, little-endian, in this order.
/// Bytes that are missing are 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Bits of [`switch`].
    pub switches: u8,
    /// Which contract.
    pub contract: u8,
    /// How often the deleter of one of ours is called too often.
    pub again: u8,
    /// One of [`origin`].
    pub origin: u8,
    /// `DLPackVersion`.
    pub version: DlVersion,
    /// `DLManagedTensorVersioned::flags`.
    pub flags: u64,
    /// `DLDevice`.
    pub device: DlDevice,
    /// How many dimensions it says it has.
    pub ndim: i32,
    /// `DLDataType`.
    pub dtype: DataType,
    /// The data pointer, from the origin on. Where a tensor of ours begins in its buffer.
    pub data: i64,
    /// `DLTensor::byte_offset`.
    pub byte_offset: u64,
    /// `ndim` entries, and at most 9.
    pub shape: Vec<i64>,
    /// As many.
    pub strides: Vec<i64>,
}

struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut taken = [0; N];
        let (here, rest) = self.0.split_at(N.min(self.0.len()));
        taken[..here.len()].copy_from_slice(here);
        self.0 = rest;
        taken
    }

    fn entries(&mut self, count: usize) -> Vec<i64> {
        (0..count).map(|_| i64::from_le_bytes(self.take())).collect()
    }
}

impl Case {
    /// Floats of these dimensions at the region's first byte, in C's order, with which nothing is
    /// wrong.
    pub fn floats(dims: &[i64]) -> Self {
        let mut strides = vec![1_i64; dims.len()];
        for at in (1..dims.len()).rev() {
            strides[at - 1] = strides[at].wrapping_mul(dims[at].max(1));
        }
        Self {
            switches: 0,
            contract: 0,
            again: 0,
            origin: origin::FIRST,
            version: DlVersion { major: MAJOR, minor: MINOR },
            flags: 0,
            device: DlDevice { device_type: device::CPU, device_id: 0 },
            ndim: dims.len() as i32,
            dtype: DataType::F32,
            data: 0,
            byte_offset: 0,
            shape: dims.to_vec(),
            strides,
        }
    }

    /// From any bytes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut bytes = Bytes(bytes);
        let [switches, contract, again, origin] = bytes.take();
        let version = DlVersion {
            major: u32::from_le_bytes(bytes.take()),
            minor: u32::from_le_bytes(bytes.take()),
        };
        let flags = u64::from_le_bytes(bytes.take());
        let device = DlDevice {
            device_type: i32::from_le_bytes(bytes.take()),
            device_id: i32::from_le_bytes(bytes.take()),
        };
        let ndim = i32::from_le_bytes(bytes.take());
        let [code, bits] = bytes.take();
        let dtype = DataType { code, bits, lanes: u16::from_le_bytes(bytes.take()) };
        let (data, byte_offset) =
            (i64::from_le_bytes(bytes.take()), u64::from_le_bytes(bytes.take()));
        let count = usize::try_from(ndim).unwrap_or(0).min(MOST);
        let (shape, strides) = (bytes.entries(count), bytes.entries(count));
        Self {
            switches,
            contract,
            again,
            origin,
            version,
            flags,
            device,
            ndim,
            dtype,
            data,
            byte_offset,
            shape,
            strides,
        }
    }

    /// The bytes that it is made from.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.switches, self.contract, self.again, self.origin];
        bytes.extend(self.version.major.to_le_bytes());
        bytes.extend(self.version.minor.to_le_bytes());
        bytes.extend(self.flags.to_le_bytes());
        bytes.extend(self.device.device_type.to_le_bytes());
        bytes.extend(self.device.device_id.to_le_bytes());
        bytes.extend(self.ndim.to_le_bytes());
        bytes.extend([self.dtype.code, self.dtype.bits]);
        bytes.extend(self.dtype.lanes.to_le_bytes());
        bytes.extend(self.data.to_le_bytes());
        bytes.extend(self.byte_offset.to_le_bytes());
        bytes.extend(self.shape.iter().chain(&self.strides).flat_map(|entry| entry.to_le_bytes()));
        bytes
    }

    pub(super) const fn is(&self, switch: u8) -> bool {
        self.switches & switch != 0
    }

    pub(super) const fn contract(&self) -> Contract {
        CONTRACTS[self.contract as usize % CONTRACTS.len()]
    }

    /// Of one of ours: where its offset goes.
    pub(super) const fn offset(&self) -> ByteOffset {
        if self.byte_offset == 0 { ByteOffset::Folded } else { ByteOffset::Kept }
    }
}
