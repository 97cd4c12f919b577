//! `Debug` of an error, which `fn main() -> Result<(), Error>` and a failing test print: as it
//! would be derived, but a number that the message shows in hexadecimal is so here too.

use super::Error;
use core::fmt;

/// One line a variant, with all of its fields: a register is shown with its 32 bits, an address or
/// what a file says in hexadecimal.
macro_rules! shown {
    ($error:expr, $f:expr, $($variant:ident $({ $($field:ident $(as $kind:ident)?),* })?)*) => {
        match *$error {
            $(Error::$variant $({ $($field),* })? => {
                $f.debug_struct(stringify!($variant))$($(.field(stringify!($field), shown!(@ $field $($kind)?)))*)?.finish()
            })*
        }
    };
    (@ $field:ident) => { &$field };
    (@ $field:ident hex) => { &format_args!("{:#x}", $field) };
    (@ $field:ident register) => { &format_args!("{:#010x}", $field) };
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        shown!(self, f,
            NotPowerOfTwo { align_bytes }
            OutOfRange { start, end, len_bytes }
            View { len_bytes, element_bytes, align_bytes }
            NotContiguous { offset_bytes, expected as hex, found as hex }
            Misaligned { addr as hex, align_bytes }
            BlockSize { len_bytes, need_bytes, line_bytes }
            TooHigh { last as hex, addr_bits }
            NoAddress { install }
            NotOurs { addr as hex, len_bytes }
            Exhausted { need_bytes, capacity_bytes }
            NoSlots { slots }
            TooMany { what, most }
            SlotSize { slot_bytes, line_bytes }
            WholeBlock { shared_bytes }
            TooManyParts { limit }
            Tensor { rule, found, need }
            Unreachable { port, addr as hex, len_bytes, first as hex, last as hex }
            WrongBus { port, memory }
            CoherencyMismatch { port, memory_coherent }
            CannotSync { port, install }
            SharedLine { start, end, line_bytes }
            WrongDirection { index, expected }
            BufferSize { index, need_bytes, have_bytes }
            BufferAlign { index, addr as hex, align_bytes }
            Argument { name, value, min, max, multiple_of }
            Timeout { timeout_us }
            Fault { device, status as register, what }
            OperandTooLong { index, have_bytes, max_bytes }
            QueueFull { depth }
            QueueStopped { in_flight }
            BadCompletion { device, slot, bytes, most_bytes }
            EndedByReset { device }
            ShortTransfer { need_bytes, done_bytes }
            WillNotStop { device, status as register, waited_us }
            RegisterWindow { device, need_bytes, have_bytes }
            WrongDevice { device, register, expected as register, found as register }
            Cuda { call, code, name }
            NoLibrary { name, fix }
            Os { call, errno }
            Denied { what, errno, fix }
            BadName { len_bytes, max_bytes }
            NotFound { what, among }
            NotBuiltIn { kind, feature }
            NeedsDevice { kind }
            Ambiguous { what, matches }
            AttributeMissing { name }
            AttributeUnreadable { name, errno }
            AttributeEmpty { name }
            AttributeNonsense { name, value as hex }
            Unsuitable { name, value, fix }
            PagemapHidden { page as hex }
            InUse { errno }
            PinLimit { need_bytes, limit_bytes }
            Contended { tries }
            Forked { owner_pid }
            TensorOut
            Busy
        )
    }
}
