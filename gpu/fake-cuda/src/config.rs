//! A test's settings: the devices, how hostile they are, and the calls that fail.

use crate::{Function, code};

/// The most devices that a configuration has: more than one is what matters.
pub const DEVICES_MAX: usize = 4;
/// The most injected failures of a configuration.
pub const FAILURES_MAX: usize = 8;

/// A whole configuration. The default is one integrated device that is as hostile as the
/// documentation allows, and nothing fails.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How many of `devices` there are. With none, `cuInit` answers NO_DEVICE.
    pub device_count: u32,
    /// The devices.
    pub devices: [Device; DEVICES_MAX],
    /// The answer of `cuDriverGetVersion`: 1000 · major + 10 · minor.
    pub driver_version: i32,
    /// From a host pointer to its device pointer; 0 makes them equal.
    pub device_pointer_offset: u64,
    /// `cuMemHostAlloc` answers odd multiples of it; a power of two.
    pub host_alignment: usize,
    /// The bytes that `cuMemHostAlloc` and `cuMemHostRegister` can pin together.
    pub pinned_limit_bytes: u64,
    /// How many queries of its stream or event answer NOT_READY before a kernel or a copy is done.
    /// Nothing but a query or a synchronise lets a stream go on.
    pub kernel_polls: u32,
    /// How long a kernel or a copy takes at least, from when its stream comes to it.
    pub kernel_us: u64,
    /// The launch that never ends, counted from 1; 0 for none.
    pub hang_launch: u32,
    /// An error of a launch that a later call reports.
    pub late_error: LateError,
    /// Calls that fail and do nothing.
    pub failures: [Failure; FAILURES_MAX],
}

/// One device.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Compute capability, major.
    pub major: i32,
    /// Compute capability, minor.
    pub minor: i32,
    /// INTEGRATED: shares the host's memory.
    pub integrated: bool,
    /// CAN_MAP_HOST_MEMORY; without, `cuMemHostGetDevicePointer` refuses.
    pub can_map_host_memory: bool,
    /// CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: the device pointer of registered memory is its host
    /// pointer.
    pub can_use_host_pointer_for_registered_mem: bool,
    /// HOST_NATIVE_ATOMIC_SUPPORTED.
    pub host_native_atomic_supported: bool,
    /// HOST_REGISTER_SUPPORTED; without, `cuMemHostRegister` answers NOT_SUPPORTED.
    pub host_register_supported: bool,
    /// The device's memory.
    pub memory_bytes: u64,
}

/// An error of a launch, reported late; then every call in the context answers it until that ends.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LateError {
    /// The launch that fails, counted from 1; 0 for none.
    pub launch: u32,
    /// The error that it fails with.
    pub code: i32,
    /// Which later call in the context reports the error at the latest, counted from 1. With 0 only
    /// what lets the stream go on reports it: a query or a synchronise.
    pub after_calls: u32,
}

/// A call that fails and does nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// Calls of this function.
    pub function: Function,
    /// Which of them, counted from 1 since the configuration was set; 0 for all.
    pub nth: u32,
    /// Its answer; SUCCESS for an entry that is not used.
    pub code: i32,
}

impl Config {
    /// The same, and the `nth` call of `function` fails with `code`; 0 for every call.
    ///
    /// # Panics
    ///
    /// With more than [`FAILURES_MAX`] of them.
    #[must_use]
    #[allow(clippy::expect_used, reason = "a test that asks for too much has failed")]
    pub fn failing(mut self, function: Function, nth: u32, code: i32) -> Self {
        let free = self.failures.iter_mut().find(|failure| failure.code == code::SUCCESS);
        *free.expect("no room for another failure") = Failure { function, nth, code };
        self
    }

    /// The same with devices like this one, `count` of them.
    #[must_use]
    pub const fn with_devices(mut self, count: u32, device: Device) -> Self {
        self.device_count = count;
        self.devices = [device; DEVICES_MAX];
        self
    }

    pub(crate) const fn is_valid(&self) -> bool {
        self.device_count as usize <= DEVICES_MAX && self.host_alignment.is_power_of_two()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            device_count: 1,
            devices: [Device::default(); DEVICES_MAX],
            driver_version: 12040,
            device_pointer_offset: 0x10_0000_0000,
            host_alignment: 16,
            pinned_limit_bytes: 256 << 20,
            kernel_polls: 2,
            kernel_us: 0,
            hang_launch: 0,
            late_error: LateError { launch: 0, code: code::LAUNCH_FAILED, after_calls: 1 },
            failures: [Failure { function: Function::cuInit, nth: 0, code: code::SUCCESS };
                FAILURES_MAX],
        }
    }
}

/// A Jetson Orin's: integrated, compute capability 8.7.
impl Default for Device {
    fn default() -> Self {
        Self {
            major: 8,
            minor: 7,
            integrated: true,
            can_map_host_memory: true,
            can_use_host_pointer_for_registered_mem: false,
            host_native_atomic_supported: false,
            host_register_supported: true,
            memory_bytes: 1 << 30,
        }
    }
}
