#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name.

use super::Widget;
#[cfg(feature = "sim")]
use crate::sim::AnyModel;
use crate::{
    hw::Device,
    job::{AnyDriver, Parts},
    types::Result,
};

pub(crate) const NAME: &str = "widget";
pub(crate) const HELP: &str = "a core that copies operand 0 to operand 1";
pub(crate) const COMPATIBLE: &[&str] = &["acme,widget-1.0"];
pub(crate) const SETTINGS: &[&str] = &[];
/// No block design of Vivado has it.
pub(crate) const IP: &[&str] = &[];
pub(crate) const PARAMETERS: &[(&str, &str)] = &[];
pub(crate) const MEMORY_BYTES: usize = 0;
pub(crate) const COPIES: bool = true;
#[cfg(feature = "sim")]
pub(crate) const MODEL: Option<fn() -> AnyModel> = Some(|| AnyModel::new(super::WidgetModel::default()));

/// # Safety
/// As [`Widget::open`].
pub(crate) unsafe fn open<'a, D: Device + Send + 'a>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    // SAFETY: the caller's promise.
    AnyDriver::new(unsafe { Widget::open(parts.device) })
}
