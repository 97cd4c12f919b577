//! A driver in Rust as a shared library that programs in C, Python and Rust load: here the
//! runtime's own for ZynqMP's DMA channel, by another name.
#![allow(unsafe_code, reason = "that the device is the driver's is the program's promise")]

use contigo::drivers::zdma::Zdma;
use contigo::job::Settings;
use contigo::{Error, Result};
use contigo_objects::driver::{DriverDevice, Export};
use core::ffi::CStr;

struct Copier;

impl Export for Copier {
    type Driver = Zdma<DriverDevice>;
    const NAME: &'static CStr = c"my-copier";
    const HELP: &'static CStr = c"copies operand 0 to operand 1, one job at a time";
    const SETTINGS: &'static CStr = c"channel";

    unsafe fn open(device: DriverDevice, settings: Settings<'_>) -> Result<Self::Driver> {
        if let Some(channel) = settings.number("channel", 0, 7)?.filter(|channel| *channel != 0) {
            return Err(Error::Argument {
                name: "channel",
                value: channel,
                min: 0,
                max: 0,
                multiple_of: 1,
            });
        }
        // SAFETY: the caller's promise.
        unsafe { Zdma::simple(device) }
    }
}

contigo_objects::export_driver!(Copier);
