//! The entry points of a module of SPIR-V, read before a driver trusts it.

use super::interface::Interface;
use contigo::{Error, Result};
use std::collections::BTreeMap;
use std::ffi::CString;

/// An entry point that computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: CString,
    /// The threads of its workgroup, where the module says them as numbers.
    pub(super) local: Option<[u32; 3]>,
}

/// SPIR-V's first word (SPIR-V specification, 2.3 "Physical Layout of a SPIR-V Module and
/// Instruction").
pub(super) const MAGIC: u32 = 0x0723_0203;
/// Words before the first instruction: magic, version, generator, bound, schema.
const HEADER_WORDS: usize = 5;

// SPIR-V specification, 3.42.4 "Mode-Setting Instructions", 3.3 "Execution Model", 3.6 "Execution
// Mode".
const OP_ENTRY_POINT: u32 = 15;
const OP_EXECUTION_MODE: u32 = 16;
const OP_FUNCTION: u32 = 54;
const OP_FUNCTION_END: u32 = 56;
const GL_COMPUTE: u32 = 5;
const LOCAL_SIZE: u32 = 17;

/// The entry points of a module that compute. Where it has one alone, also what that asks of a job;
/// of several, this code does not find out which one uses which resource.
pub(super) fn entries(words: &[u32]) -> Result<(Vec<Entry>, Option<Interface>)> {
    let (value, min) = (words.len() as u64 * 4, HEADER_WORDS as u64 * 4);
    let Some((header, mut rest)) = words.split_at_checked(HEADER_WORDS) else {
        return Err(Error::Argument {
            name: "the length of a module of SPIR-V",
            value,
            min,
            max: !3,
            multiple_of: 4,
        });
    };
    let magic = header.first().copied().unwrap_or(0);
    if magic != MAGIC {
        return Err(Error::Unexpected {
            name: "the first word of a module of SPIR-V",
            value: magic.into(),
        });
    }
    let (mut found, mut modes, mut interface, mut all, mut last) =
        (Vec::new(), BTreeMap::new(), Interface::default(), 0, OP_FUNCTION);
    // Each turn takes a word at least.
    while let [first, ..] = *rest {
        let length = usize::try_from(first >> 16).unwrap_or(0);
        let cut = Error::Unexpected { name: "an instruction of SPIR-V", value: first.into() };
        let (instruction, behind) =
            rest.split_at_checked(length).filter(|_| length > 0).ok_or(cut)?;
        all += u32::from(first & 0xFFFF == OP_ENTRY_POINT);
        // After the last function only what is said about the module may follow.
        if let of @ (OP_FUNCTION | OP_FUNCTION_END) = first & 0xFFFF {
            last = of;
        }
        interface.read(instruction);
        match (first & 0xFFFF, instruction) {
            (OP_ENTRY_POINT, [_, GL_COMPUTE, id, name @ ..]) => found.push((*id, text(name))),
            (OP_EXECUTION_MODE, [_, id, LOCAL_SIZE, x, y, z]) => {
                modes.entry(*id).or_insert([*x, *y, *z]);
            }
            _ => {}
        }
        rest = behind;
    }
    if !found.is_empty() && last != OP_FUNCTION_END {
        return Err(Error::Unexpected {
            name: "the last function of SPIR-V, which has no end,",
            value: last.into(),
        });
    }
    let entries = found
        .into_iter()
        .map(|(id, name)| Entry { name, local: modes.get(&id).copied() })
        .collect();
    Ok((entries, (all == 1).then_some(interface)))
}

/// A literal: bytes up to a NUL, the lowest byte of a word first (2.2.1 "Instructions").
fn text(words: &[u32]) -> CString {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0);
    // No byte is a NUL.
    CString::new(bytes.collect::<Vec<_>>()).unwrap_or_default()
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]
mod tests {
    use super::*;

    const MAIN: [u32; 14] =
        // OpEntryPoint GLCompute %4 "main"; OpExecutionMode %4 LocalSize 64 2 1
        [
            MAGIC,
            0x1_0300,
            0,
            9,
            0,
            5 << 16 | 15,
            5,
            4,
            u32::from_le_bytes(*b"main"),
            0,
            6 << 16 | 16,
            4,
            17,
            64,
        ];
    /// The rest of it, and OpFunctionEnd.
    const END: [u32; 3] = [2, 1, 1 << 16 | 56];

    fn found(words: &[u32]) -> Vec<Entry> {
        entries(words).unwrap().0
    }

    #[test]
    fn an_entry_point_has_its_name_and_its_threads() {
        let words: Vec<_> = MAIN.into_iter().chain(END).collect();
        assert_eq!(found(&words), [Entry { name: c"main".into(), local: Some([64, 2, 1]) }]);
        // Of another shader's mode nothing is taken.
        let other: Vec<_> =
            words.iter().enumerate().map(|(at, word)| if at == 11 { 5 } else { *word }).collect();
        assert_eq!(found(&other), [Entry { name: c"main".into(), local: None }]);
        let vertex: Vec<_> =
            words.iter().enumerate().map(|(at, word)| if at == 6 { 0 } else { *word }).collect();
        assert_eq!(found(&vertex), []);
        // The last function is cut. Words about a module may stand behind it, as OpNop does.
        let cut = entries(&words[..16]).unwrap_err();
        assert_eq!(
            cut,
            Error::Unexpected { name: "the last function of SPIR-V, which has no end,", value: 54 }
        );
        assert_eq!(found(&words.into_iter().chain([1 << 16]).collect::<Vec<_>>()).len(), 1);
    }

    #[test]
    fn what_is_no_spirv_is_refused() {
        assert!(matches!(
            entries(&MAIN[..4]),
            Err(Error::Argument { value: 16, min: 20, multiple_of: 4, .. })
        ));
        assert!(matches!(entries(&[]), Err(Error::Argument { value: 0, .. })));
        assert!(matches!(
            entries(&[0x464C_457F; 8]),
            Err(Error::Unexpected { value: 0x464C_457F, .. })
        ));
        // The last instruction is cut, or says that it has no words.
        assert!(matches!(
            entries(&MAIN),
            Err(Error::Unexpected { name: "an instruction of SPIR-V", .. })
        ));
        let endless: Vec<_> = MAIN[..5].iter().copied().chain([15]).collect();
        assert!(matches!(entries(&endless), Err(Error::Unexpected { value: 15, .. })));
    }
}
