//! The rules of an import, from the documentation and `dlpack.h`: sums in 128 bits that stop at
//! their ends, which no region reaches.

use super::{Case, switch};
use contigo::Error;
use contigo::dlpack::Place;
use contigo::types::TensorRule;

/// A tensor as a consumer receives it.
pub(super) struct Told<'c> {
    pub(super) case: &'c Case,
    /// The data pointer.
    pub(super) data: u64,
}

/// The required answer. An error is one of those listed.
pub(super) struct Verdict {
    pub(super) described: Result<Seen, Vec<Error>>,
    /// First byte, from the beginning of the region, and length.
    pub(super) imported: Result<(usize, usize), Vec<Error>>,
}

/// The facts that its description must state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) place: Place,
    pub(super) elements: usize,
    pub(super) element_bytes: usize,
    pub(super) addr: u64,
    /// The first stride that differs from C's: found, needed.
    pub(super) strided: Option<(i64, i64)>,
    /// First byte and length, where the tensor does not go beyond all addresses.
    pub(super) extent: Option<(u64, usize)>,
}

pub(super) const fn wrong(rule: TensorRule, found: u64, need: u64) -> Error {
    Error::Tensor { rule, found, need }
}

/// More than all addresses.
pub(super) const BEYOND: Error = wrong(TensorRule::Size, u64::MAX, isize::MAX as u64);

impl Seen {
    /// The errors of a copy by the CPU.
    pub(super) fn against_copies(&self) -> Vec<Error> {
        let mut broken = vec![];
        if !matches!(self.place, Place::Cpu | Place::CudaHost) {
            broken.push(wrong(TensorRule::DeviceType, type_of(self.place), 1));
        }
        broken.extend(self.strides());
        if usize::try_from(self.addr).is_err() {
            broken.push(wrong(TensorRule::Address, self.addr, usize::MAX as u64));
        }
        broken
    }

    fn strides(&self) -> Option<Error> {
        self.strided.map(|(found, need)| wrong(TensorRule::Strides, found as u64, need as u64))
    }
}

impl Told<'_> {
    pub(super) fn judge(&self, (region, region_bytes): (u64, usize)) -> Verdict {
        let described = self.describe();
        let imported = described.clone().and_then(|seen| {
            let contract = self.case.contract();
            let mut broken = vec![];
            if contract.place.is_some_and(|need| need != seen.place) {
                broken.push(wrong(
                    TensorRule::DeviceType,
                    type_of(seen.place),
                    contract.place.map_or(0, type_of),
                ));
            }
            if !matches!(seen.place, Place::Cpu | Place::CudaHost) {
                broken.push(wrong(TensorRule::DeviceType, type_of(seen.place), 1));
            }
            let align = contract.align_bytes.max(1) as u64;
            if seen.elements > 0 && !seen.addr.is_multiple_of(align) {
                broken.push(wrong(TensorRule::Alignment, seen.addr, align));
            }
            if contract.contiguous {
                broken.extend(seen.strides());
            }
            let inside = match seen.extent {
                Some((_, 0)) => Some((0, 0)),
                Some((first, len)) => {
                    let (first, region) = (i128::from(first), i128::from(region));
                    let is_inside =
                        region <= first && first + len as i128 <= region + region_bytes as i128;
                    is_inside.then_some(((first - region) as usize, len))
                }
                None => None,
            };
            let outside =
                seen.extent.map_or(BEYOND, |(addr, len_bytes)| Error::NotOurs { addr, len_bytes });
            match inside {
                Some(span) if broken.is_empty() => Ok(span),
                Some(_) => Err(broken),
                None => {
                    broken.push(outside);
                    Err(broken)
                }
            }
        });
        Verdict { described, imported }
    }

    fn describe(&self) -> Result<Seen, Vec<Error>> {
        let case = self.case;
        if !case.is(switch::LEGACY) && case.version.major != 1 {
            return Err(vec![wrong(TensorRule::MajorVersion, case.version.major.into(), 1)]);
        }
        let mut broken = vec![];
        if case.dtype.lanes != 1 {
            broken.push(wrong(TensorRule::Lanes, case.dtype.lanes.into(), 1));
        }
        if case.dtype.bits == 0 || !case.dtype.bits.is_multiple_of(8) {
            broken.push(wrong(TensorRule::Type, case.dtype.bits.into(), 8));
        }
        let place = place(case.device.device_type);
        if place.is_none() {
            broken.push(wrong(
                TensorRule::DeviceType,
                i64::from(case.device.device_type) as u64,
                1,
            ));
        }
        let Some(elements) = self.elements(&mut broken) else { return Err(broken) };
        let element_bytes = usize::from(case.dtype.bits / 8);
        if elements as i128 * element_bytes as i128 > isize::MAX as i128 {
            broken.push(BEYOND);
        }
        let mut addr = 0;
        if elements > 0 && self.data == 0 {
            broken.push(wrong(TensorRule::NullData, 0, elements as u64));
        } else if elements > 0 {
            let sum = i128::from(self.data) + i128::from(case.byte_offset);
            addr = u64::try_from(sum).unwrap_or_else(|_| {
                broken.push(BEYOND);
                0
            });
        }
        match place {
            Some(place) if broken.is_empty() => {
                let strided = self.strided(elements);
                let extent = self.extent(elements, element_bytes, addr, strided.is_some());
                Ok(Seen { place, elements, element_bytes, addr, strided, extent })
            }
            _ => Err(broken),
        }
    }

    /// How many elements there are; none where that cannot be said.
    fn elements(&self, broken: &mut Vec<Error>) -> Option<usize> {
        let (ndim, dims) = (self.case.ndim, &self.case.shape);
        if !(0..=8).contains(&ndim) {
            broken.push(wrong(TensorRule::Dims, i64::from(ndim) as u64, 8));
            return None;
        }
        if ndim > 0 && self.case.is(switch::NULL_SHAPE) {
            broken.push(wrong(TensorRule::NullShape, 0, ndim as u64));
            return None;
        }
        if let Some(negative) = dims.iter().find(|dim| **dim < 0) {
            broken.push(wrong(TensorRule::Dimension, *negative as u64, i64::MAX as u64));
            return None;
        }
        // Of an empty tensor the other dimensions must be countable too.
        let countable =
            dims.iter().fold(1_u128, |product, dim| product.saturating_mul((*dim).max(1) as u128));
        let elements = if dims.contains(&0) { Some(0) } else { usize::try_from(countable).ok() };
        let elements = elements.filter(|_| countable <= i64::MAX as u128);
        if elements.is_none() {
            broken.push(BEYOND);
        }
        elements
    }

    /// From one element to the next in C's order.
    fn c_strides(&self) -> Vec<i64> {
        let dims = &self.case.shape;
        (0..dims.len()).map(|at| dims[at + 1..].iter().map(|dim| (*dim).max(1)).product()).collect()
    }

    fn strided(&self, elements: usize) -> Option<(i64, i64)> {
        if elements == 0 || self.case.is(switch::NULL_STRIDES) {
            return None;
        }
        let strides = self.case.strides.iter().copied().zip(self.c_strides());
        let mut each = self.case.shape.iter().zip(strides);
        each.find(|(dim, (found, need))| **dim != 1 && found != need).map(|(_, pair)| pair)
    }

    fn extent(
        &self,
        elements: usize,
        element_bytes: usize,
        addr: u64,
        strided: bool,
    ) -> Option<(u64, usize)> {
        if elements == 0 {
            return Some((addr, 0));
        }
        let strides = if strided { self.case.strides.clone() } else { self.c_strides() };
        let reaches = self
            .case
            .shape
            .iter()
            .zip(&strides)
            .map(|(dim, stride)| i128::from(*dim - 1) * i128::from(*stride));
        let sum = |sign: i128| {
            reaches
                .clone()
                .filter(|reach| reach.signum() == sign)
                .fold(0_i128, i128::saturating_add)
        };
        let item = element_bytes as i128;
        let first = i128::from(addr).saturating_add(sum(-1).saturating_mul(item));
        let end = i128::from(addr).saturating_add(sum(1).saturating_add(1).saturating_mul(item));
        let len = usize::try_from(end.saturating_sub(first)).ok()?;
        // The address after the last byte is one too.
        u64::try_from(end).ok()?;
        Some((u64::try_from(first).ok()?, len))
    }
}

/// `dlpack.h`: `DLDeviceType`. Objects of OpenCL and Vulkan (4, 7) are lent, and never taken in.
const fn place(device_type: i32) -> Option<Place> {
    match device_type {
        1 => Some(Place::Cpu),
        2 => Some(Place::Cuda),
        3 => Some(Place::CudaHost),
        12 => Some(Place::BusAddress),
        _ => None,
    }
}

const fn type_of(place: Place) -> u64 {
    match place {
        Place::Cpu => 1,
        Place::Cuda => 2,
        Place::CudaHost => 3,
        Place::OpenCl => 4,
        Place::Vulkan => 7,
        Place::BusAddress => 12,
    }
}
