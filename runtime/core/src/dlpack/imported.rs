//! A framework's tensor whose memory is ours.

use super::{Contract, DataType, Foreign, Lent, Shape};
use crate::dlpack::TensorRule;
use crate::mem::span::{Part, Span};
use crate::mem::{CpuBuf, Port, Region};
use crate::types::{DevAddr, Error, Refused, Result};
use core::fmt;

/// A framework's tensor whose elements lie in a region: nothing is copied, and its bus address is
/// known. It keeps the framework's tensor until it is dropped, and keeps the region alive as a
/// handle does. It gives no view and no operand: the framework may read and write the elements. To
/// get the buffer back, give this value to [`into_buf`](Self::into_buf) together with the [`Lent`]
/// that the framework got it from.
pub struct Imported {
    foreign: Foreign,
    region: Region,
    shape: Shape,
    dtype: DataType,
    read_only: bool,
    span: Span,
}

impl Imported {
    /// Takes `foreign` if all its elements lie in `region`, at any interior pointer of it, and
    /// `contract` allows it.
    ///
    /// # Errors
    /// The tensor comes back with the error of [`Foreign::describe`] or of the contract.
    /// [`Error::NotOurs`]: its elements are elsewhere; only [`Foreign::copy_to`] brings them here.
    /// [`Error::Tensor`] with [`TensorRule::DeviceType`]: its address is not the CPU's.
    /// [`Error::TooMany`]: the region has too many handles. Dropping the tensor calls its deleter,
    /// as DLPack demands.
    pub fn new(
        region: &Region,
        foreign: Foreign,
        contract: &Contract,
    ) -> Result<Self, Refused<Foreign>> {
        let found = foreign.describe().and_then(|what| {
            contract.check(what.addr, what.place, &what.shape, what.strides())?;
            if !what.place.is_host() {
                let (found, need) = (what.place.device_type(), super::Place::Cpu.device_type());
                return Err(Error::Tensor { rule: TensorRule::DeviceType, found, need });
            }
            let (first, len_bytes) = what.extent()?;
            let kept = region.another()?;
            let mapping = &kept.block().state().mapping;
            // An empty tensor has no address.
            let start = if len_bytes == 0 {
                0
            } else {
                first.wrapping_sub(mapping.cpu.addr().get() as u64)
            };
            match usize::try_from(start) {
                Ok(start)
                    if start <= mapping.len_bytes && len_bytes <= mapping.len_bytes - start =>
                {
                    Ok((what.shape, what.dtype, what.read_only, Span::new(start, len_bytes), kept))
                }
                _ => Err(Error::NotOurs { addr: first, len_bytes }),
            }
        });
        match found {
            Ok((shape, dtype, read_only, span, region)) => {
                Ok(Self { foreign, region, shape, dtype, read_only, span })
            }
            Err(error) => Err(Refused::new(error, foreign)),
        }
    }

    /// The number of elements in each dimension.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The type of an element.
    #[must_use]
    pub const fn dtype(&self) -> DataType {
        self.dtype
    }

    /// Returns whether its producer forbids writing.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The length from the lowest element's first byte to the highest element's last.
    #[must_use]
    pub const fn len_bytes(&self) -> usize {
        self.span.len
    }

    /// The lowest element's offset in the region, in bytes.
    #[must_use]
    pub const fn offset_bytes(&self) -> usize {
        self.span.start
    }

    /// The lowest element's bus address through `port`: a number, which gives no access to the
    /// bytes.
    ///
    /// # Errors
    /// [`Error::WrongBus`], [`Error::Unreachable`].
    pub fn dev_addr(&self, port: &Port) -> Result<DevAddr> {
        let mapping = &self.region.block().state().mapping;
        if port.bus != mapping.bus {
            return Err(Error::WrongBus { port: port.name, memory: mapping.bus });
        }
        port.dev_addr(mapping.base.plus(self.span.start), self.span.len)
    }

    /// Returns the framework's tensor, whose deleter was not called.
    #[must_use]
    pub fn into_foreign(self) -> Foreign {
        self.foreign
    }

    /// Returns the buffer: calls the tensor's deleter, which lets `lent` come back if that was its
    /// last tensor, and the buffer shows the tensor's bytes.
    ///
    /// # Errors
    /// `lent` comes back with [`Error::NotOurs`]: the tensor is not in its buffer; or with
    /// [`Error::TensorOut`]: the framework has other tensors of it. This tensor's deleter is called
    /// in any case.
    pub fn into_buf(self, lent: Lent<CpuBuf>) -> Result<CpuBuf, Refused<Lent<CpuBuf>>> {
        let Self { foreign, span, region, .. } = self;
        let of_lent = lent.span(region.block());
        drop(foreign);
        let Some(start) = of_lent
            .filter(|own| own.start <= span.start && span.end() <= own.end())
            .map(|own| span.start - own.start)
        else {
            let addr = span.start as u64;
            return Err(Refused::new(Error::NotOurs { addr, len_bytes: span.len }, lent));
        };
        let buf = lent.take_back()?;
        // The range lies inside, as checked above.
        Ok(buf.slice(start..start + span.len).unwrap_or_else(|refused| refused.into_returned()))
    }
}

impl fmt::Debug for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = Part::of(self.span.start..self.span.end());
        f.debug_struct("Imported")
            .field("foreign", &self.foreign)
            .field("bytes", &shown)
            .finish_non_exhaustive()
    }
}
