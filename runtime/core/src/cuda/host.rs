#![allow(unsafe_code, reason = "a backend, and memory that the driver gives as a pointer")]
//! The CPU's memory, pinned and mapped for a GPU.

use super::Gpu;
use super::abi::{DEVICE_MAP, NOT_READY, PORTABLE, WRITE_COMBINED, pointer};
use super::driver::check;
use crate::mem::{Backend, Mapping, SyncScope};
use crate::trace::{self, Event, Site};
use crate::types::{Align, BaseAddr, DevAddr, Direction, Error, Refused, Result};
use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ops::Range;
use core::ptr::{self, NonNull};
use core::sync::atomic::{Ordering, fence};
use core::{fmt, slice};

/// The CPU's memory, pinned and mapped for a GPU: a [`Backend`] that CPU and GPU each have a view
/// of, without copies.
///
/// **Alignment.** As requested, in both views, and at least 64 bytes. If the driver's pointer is
/// less aligned, a little more is allocated.
///
/// **Owner.** The memory belongs to this value until it is dropped. Then it returns to the driver,
/// or is leaked if a kernel hangs, because the driver might wait for that kernel. A
/// [`Region`](crate::Region) over it frees it after the last buffer, and never if a buffer was
/// forgotten.
///
/// # References
/// CUDA Driver API, `cuMemHostAlloc`, `cuMemHostRegister`, `cuMemHostGetDevicePointer`,
/// `cuPointerGetAttributes`; CUDA for Tegra.
pub struct CudaHost {
    /// Dropped after the memory, which is freed in `drop`.
    gpu: Gpu,
    /// The driver's handle: the first byte of the allocation, or of the registered memory.
    handle: NonNull<c_void>,
    /// The first byte of the block.
    cpu: NonNull<u8>,
    len_bytes: usize,
    addr: DevAddr,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Allocated,
    Registered,
}

impl CudaHost {
    /// Allocates `len_bytes`, rounded up to whole lines of 64, zeroed, pinned, and mapped for all
    /// GPUs of the program. Both views begin at a multiple of `align`.
    ///
    /// # Errors
    /// - [`Error::Argument`]: `len_bytes` is 0, or does not fit an address space.
    /// - [`Error::Cuda`] with `cuMemHostAlloc`: 2, there is not enough memory, or no more may be
    ///   pinned. A code of 700 or above is an earlier kernel's failure: the context is lost.
    /// - [`Error::Misaligned`]: the GPU's view is misaligned, while the CPU's is not.
    ///   [`Error::Unexpected`]: the driver reports another kind of memory.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn allocate(gpu: &Gpu, len_bytes: usize, align: Align) -> Result<Self> {
        Self::allocate_as(gpu, len_bytes, align, PORTABLE | DEVICE_MAP)
    }

    /// As [`allocate`](Self::allocate), write-combined: for memory that the CPU only writes, front
    /// to back. A card reads it faster; the CPU reads it very slowly. (On x86-64 it is `WC`, on Arm
    /// Normal Non-cacheable.)
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    ///
    /// # Safety
    /// A thread that writes to a buffer of it, and then lets another thread of the CPU read it,
    /// calls `core::sync::atomic::fence(SeqCst)` between the two. On x86-64 a release store does
    /// not order earlier write-combined stores (Intel SDM 3A, 9.2.2 and 12.3.1). Jobs need no
    /// fence: the queue's barrier is one.
    #[cfg_attr(feature = "audit", track_caller)]
    pub unsafe fn allocate_write_combined(
        gpu: &Gpu,
        len_bytes: usize,
        align: Align,
    ) -> Result<Self> {
        Self::allocate_as(gpu, len_bytes, align, PORTABLE | DEVICE_MAP | WRITE_COMBINED)
    }

    #[cfg_attr(feature = "audit", track_caller)]
    fn allocate_as(gpu: &Gpu, len_bytes: usize, align: Align, flags: u32) -> Result<Self> {
        let align = align.max(Align::LINE);
        let max = (isize::MAX as usize).saturating_sub(align.bytes());
        let whole_bytes = Align::LINE.round_up(len_bytes).filter(|whole| (1..=max).contains(whole));
        let out_of_bounds = Error::Argument {
            name: "len_bytes",
            value: len_bytes as u64,
            min: 1,
            max: max as u64,
            multiple_of: 1,
        };
        let whole_bytes = whole_bytes.ok_or(out_of_bounds)?;
        let allocate = |len_bytes| {
            let mut first = ptr::null_mut();
            gpu.within(|api| {
                // SAFETY: the pointer comes from a reference.
                check("cuMemHostAlloc", unsafe {
                    (api.host_alloc)(&raw mut first, len_bytes, flags)
                })
            })?;
            NonNull::new(first).ok_or(Error::Unexpected { name: "cuMemHostAlloc", value: 0 })
        };
        let mut this = Self::found(gpu, allocate(whole_bytes)?, whole_bytes, Kind::Allocated)?;
        let skip = |this: &Self| this.cpu.addr().get().wrapping_neg() & (align.bytes() - 1);
        if skip(&this) != 0 {
            // Allocates again, with room for the alignment.
            drop(this);
            let larger = allocate(whole_bytes + align.bytes())?;
            this = Self::found(gpu, larger, whole_bytes, Kind::Allocated)?;
            let skip = skip(&this);
            // SAFETY: `skip` is less than `align`, and there is room for `align`.
            this.cpu = unsafe { this.cpu.add(skip) };
            this.addr = DevAddr(this.addr.0.wrapping_add(skip as u64));
        }
        if !align.divides(this.addr.0) {
            return Err(Error::Misaligned { addr: this.addr.0, align_bytes: align.bytes() });
        }
        // SAFETY: this many bytes are allocated at `cpu`, and no other code has their address.
        unsafe { this.cpu.as_ptr().write_bytes(0, whole_bytes) };
        // A fence before other code gets the memory, whatever its kind.
        fence(Ordering::SeqCst);
        Ok(this)
    }

    /// Pins and maps memory that the program already has. [`unregister`](Self::unregister) returns
    /// it, as long as no region was made of this value. If this value is dropped instead, the
    /// driver unpins the memory, and the program has lost it.
    ///
    /// A region needs whole lines of 64 bytes, and refuses memory that does not begin and end
    /// there. If the program forks (`std::process::Command` may) on a kernel before 5.12, it no
    /// longer sees what the GPU does to registered memory: the pages become the child's.
    ///
    /// # Errors
    /// The memory comes back with [`Error::Cuda`] and `cuMemHostRegister`: 712, some of it is
    /// registered; 801, unsupported on this machine; or as [`allocate`](Self::allocate).
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn register(
        gpu: &Gpu,
        memory: &'static mut [u8],
    ) -> Result<Self, Refused<&'static mut [u8]>> {
        let len_bytes = memory.len();
        let first = NonNull::from(memory).cast::<u8>();
        // SAFETY: `memory` is this call's for ever, and is used again only if nothing was
        // registered.
        match unsafe { Self::register_raw(gpu, first, len_bytes) } {
            Ok(this) => Ok(this),
            // SAFETY: the pointer was made of this slice, and no other code was given its address.
            Err(error) => Err(Refused::new(error, unsafe {
                slice::from_raw_parts_mut(first.as_ptr(), len_bytes)
            })),
        }
    }

    /// As [`register`](Self::register), for memory of other code: a framework's tensor.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    ///
    /// # Safety
    /// `len_bytes` bytes at `first` are mapped, readable, writable and initialised, and no other
    /// code reads or writes them, until [`unregister`](Self::unregister) has returned `Ok`. If that
    /// is never called, this holds for ever: dropping this value, or a region over it, may leak it
    /// silently.
    #[cfg_attr(feature = "audit", track_caller)]
    pub unsafe fn register_raw(gpu: &Gpu, first: NonNull<u8>, len_bytes: usize) -> Result<Self> {
        if len_bytes == 0 {
            return Err(Error::Argument {
                name: "len_bytes",
                value: 0,
                min: 1,
                max: isize::MAX as u64,
                multiple_of: 1,
            });
        }
        let handle = first.cast::<c_void>();
        let flags = PORTABLE | DEVICE_MAP;
        gpu.within(|api| {
            // SAFETY: this many bytes exist, by the caller's promise; the driver pins the pages
            // that hold them.
            check("cuMemHostRegister", unsafe {
                (api.host_register)(handle.as_ptr(), len_bytes, flags)
            })
        })?;
        Self::found(gpu, handle, len_bytes, Kind::Registered)
    }

    /// Unpins the memory that was passed to [`register`](Self::register), and returns it.
    ///
    /// # Errors
    /// The driver's error; the memory stays registered. [`Error::Unsupported`]: it was allocated
    /// here.
    ///
    /// # Safety
    /// It was made by [`register`](Self::register), not by [`register_raw`](Self::register_raw).
    pub unsafe fn unregister(self) -> Result<&'static mut [u8], Refused<Self>> {
        if self.kind == Kind::Allocated {
            let fix = "drop it";
            return Err(Refused::new(
                Error::Unsupported {
                    what: "this memory was allocated here, and is not registered",
                    fix,
                },
                self,
            ));
        }
        let mut this = ManuallyDrop::new(self);
        match this.give_back() {
            Ok(()) => {
                // SAFETY: this runs once, and nothing uses the field after it: the rest of the
                // value is numbers, and is not dropped.
                unsafe { ptr::drop_in_place(&raw mut this.gpu) };
                // SAFETY: it is the slice that `register` was given, by the caller's promise; the
                // GPU no longer has it.
                Ok(unsafe { slice::from_raw_parts_mut(this.cpu.as_ptr(), this.len_bytes) })
            }
            Err(error) => Err(Refused::new(error, ManuallyDrop::into_inner(this))),
        }
    }

    /// Asks the driver for the GPU's view of the memory, and checks the answers. If one is wrong,
    /// the memory is freed.
    #[cfg_attr(feature = "audit", track_caller)]
    fn found(gpu: &Gpu, handle: NonNull<c_void>, len_bytes: usize, kind: Kind) -> Result<Self> {
        gpu.took();
        let mut this = Self {
            gpu: gpu.clone(),
            handle,
            cpu: handle.cast(),
            len_bytes,
            addr: DevAddr(0),
            kind,
        };
        // From here on an error drops `this`, which frees the memory.
        let mut addr = 0;
        gpu.within(|api| {
            // SAFETY: the pointer comes from a reference, and the memory belongs to the driver.
            check("cuMemHostGetDevicePointer", unsafe {
                (api.host_device_pointer)(&raw mut addr, handle.as_ptr(), 0)
            })
        })?;
        this.addr = DevAddr(addr);
        let (mut memory_type, mut device, mut host) = (0_u32, 0_u64, 0_u64);
        let mut which = [pointer::MEMORY_TYPE, pointer::DEVICE_POINTER, pointer::HOST_POINTER];
        let mut into = [
            (&raw mut memory_type).cast::<c_void>(),
            (&raw mut device).cast(),
            (&raw mut host).cast(),
        ];
        let asked = gpu.within(|api| {
            // SAFETY: there are three attributes, and a variable of each one's type.
            check("cuPointerGetAttributes", unsafe {
                (api.pointer_attributes)(3, which.as_mut_ptr(), into.as_mut_ptr(), addr)
            })
        });
        asked?;
        for (name, value, expected) in [
            ("CU_POINTER_ATTRIBUTE_MEMORY_TYPE", memory_type.into(), pointer::HOST.into()),
            ("CU_POINTER_ATTRIBUTE_DEVICE_POINTER", device, addr),
            ("CU_POINTER_ATTRIBUTE_HOST_POINTER", host, handle.addr().get() as u64),
        ] {
            if value != expected {
                return Err(Error::Unexpected { name, value });
            }
        }
        trace::happened(Event::MapForDevice { iova: addr, len_bytes }, Site::here());
        Ok(this)
    }

    /// Returns the memory to the driver. Called once.
    fn give_back(&self) -> Result<()> {
        let handle = self.handle.as_ptr();
        if self.gpu.is_hung() {
            // The driver would wait for the kernel.
            return Err(Error::WillNotStop {
                device: "a kernel of this GPU",
                status: NOT_READY.unsigned_abs(),
                waited_us: 0,
            });
        }
        self.gpu.within(|api| match self.kind {
            // SAFETY: it was allocated by `allocate`. No code uses it any more: this value is being
            // dropped, and a region with buffers outstanding does not drop it.
            Kind::Allocated => check("cuMemFreeHost", unsafe { (api.host_free)(handle) }),
            Kind::Registered => {
                // SAFETY: it was registered by `register_raw`; otherwise as above.
                check("cuMemHostUnregister", unsafe { (api.host_unregister)(handle) })
            }
        })?;
        self.gpu.gave_back();
        trace::happened(
            Event::UnmapForDevice { iova: self.addr.0, len_bytes: self.len_bytes },
            Site::NONE,
        );
        Ok(())
    }
}

impl Drop for CudaHost {
    /// Frees the memory. If the driver refuses, the memory stays, and its GPU's context with it.
    fn drop(&mut self) {
        if self.give_back().is_err() {
            trace::happened(Event::Leak { len_bytes: self.len_bytes }, Site::NONE);
        }
    }
}

// SAFETY: 1. The pointers were obtained in `found` and do not change. 2. This many bytes are the
// driver's allocation, zeroed, or the registered memory of `register_raw`'s contract; they are
// pinned and stay mapped until `give_back`, which runs when this value is dropped. 3. Nothing is
// synchronised. 4. The address is the driver's for this GPU, contiguous as all of its mappings are,
// on that GPU's bus. 5. The driver keeps pinned memory coherent: a GPU snoops the CPU's caches, or
// the CPU does not cache it. The accelerator's poll orders the two.
unsafe impl Backend for CudaHost {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Allocated => "cuda-host",
            Kind::Registered => "cuda-registered",
        }
    }

    fn mapping(&self) -> Mapping {
        Mapping {
            cpu: self.cpu,
            len_bytes: self.len_bytes,
            base: BaseAddr::Dev(self.addr),
            bus: self.gpu.bus(),
            scope: SyncScope::Coherent,
            coherent: Some(true),
        }
    }

    unsafe fn sync_for_device(&self, _range: Range<usize>, _direction: Direction) -> Result<()> {
        Ok(())
    }

    unsafe fn sync_for_cpu(&self, _range: Range<usize>, _direction: Direction) -> Result<()> {
        Ok(())
    }
}

// SAFETY: the memory belongs to this value, and the driver's functions may be called on any thread.
unsafe impl Send for CudaHost {}
// SAFETY: `&self` gives only numbers.
unsafe impl Sync for CudaHost {}

impl fmt::Debug for CudaHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaHost")
            .field("kind", &self.kind)
            .field("addr", &self.addr)
            .field("len_bytes", &self.len_bytes)
            .finish()
    }
}
