//! Resets: asserts and releases a core's line, through any kind of pin.
//!
//! A driver's reset line is any [`OutputPin`](embedded_hal::digital::OutputPin) in a [`ResetLine`],
//! with its polarity. On Linux a [`Place`] names one: a line of a GPIO chip by name, or by chip and
//! offset, or a device that the kernel module has.
//!
//! - ZynqMP's chip is `zynqmp_gpio`. EMIO line 0 is offset 78, and `pl_resetn0` to `pl_resetn3` are
//!   offsets 173 down to 170.
//! - Zynq-7000's chip is `zynq_gpio`, and EMIO line 0 is offset 54. Its `FCLK_RESETn` are not
//!   GPIOs: the kernel's FPGA manager pulses them with each bitstream.
//!
//! ```
//! use contigo_bringup::resets::{Active, Width};
//!
//! assert_eq!(Width::from_us(10)?.us(), 10);
//! assert!(Width::from_us(0).is_err());
//! assert_eq!("low".parse::<Active>()?, Active::Low);
//! # Ok::<(), contigo_bringup::resets::ResetError>(())
//! ```
//!
//! # References
//! Linux, `drivers/gpio/gpio-zynq.c` (banks), `drivers/gpio/gpiolib-cdev.c`; AMD, UG1085, "PS-PL
//! GPIO"; xilfpga, `XFpga_PsPlGpioResetsLow`.

mod chips;
mod dev_node;
mod line;
mod place;
#[cfg(test)]
mod tests;

pub use chips::{GpioLine, lines, open};
pub use dev_node::ContigoDevice;
pub use line::{Active, PulseError, ResetLine};
pub use place::{Place, ResetError, Width};

/// The delay for a program under Linux, by the kernel's clock.
pub use linux_embedded_hal::Delay;
