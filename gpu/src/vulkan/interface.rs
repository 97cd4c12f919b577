//! The resources of a shader, read from its SPIR-V and compared with a signature. A driver trusts
//! both, and may end the process where the shader asks for more.

use crate::common::within;
use contigo::job::{Argument, Signature};
use contigo::{Error, Result};
use core::ops::Range;
use std::collections::BTreeMap;

// SPIR-V specification, 3.42 "Instructions", 3.7 "Storage Class", 3.20 "Decoration".
const OP_TYPE_INT: u32 = 21;
const OP_TYPE_FLOAT: u32 = 22;
const OP_TYPE_VECTOR: u32 = 23;
const OP_TYPE_MATRIX: u32 = 24;
const OP_TYPE_ARRAY: u32 = 28;
const OP_TYPE_STRUCT: u32 = 30;
const OP_TYPE_POINTER: u32 = 32;
const OP_CONSTANT: u32 = 43;
const OP_VARIABLE: u32 = 59;
const OP_DECORATE: u32 = 71;
const OP_MEMBER_DECORATE: u32 = 72;
const OP_GROUP_DECORATE: u32 = 74;
const OP_GROUP_MEMBER_DECORATE: u32 = 75;
const UNIFORM_CONSTANT: u32 = 0;
const UNIFORM: u32 = 2;
const PUSH_CONSTANT: u32 = 9;
const STORAGE_BUFFER: u32 = 12;
const BUFFER_BLOCK: u32 = 3;
const ROW_MAJOR: u32 = 4;
const ARRAY_STRIDE: u32 = 6;
const MATRIX_STRIDE: u32 = 7;
const BINDING: u32 = 33;
const DESCRIPTOR_SET: u32 = 34;
const OFFSET: u32 = 35;

/// The resources of a module.
#[derive(Debug, Default)]
pub(super) struct Interface {
    /// Storage class, pointer type and id of each variable that a job binds.
    variables: Vec<(u32, u32, u32)>,
    types: BTreeMap<u32, Type>,
    /// Constants of one word.
    constants: BTreeMap<u32, u32>,
    /// By id and decoration: its first literal, or 0.
    decorations: BTreeMap<(u32, u32), u32>,
    /// The same of a structure's member: by id, member and decoration.
    members: BTreeMap<(u32, u32, u32), u32>,
    has_groups: bool,
}

#[derive(Clone, Debug)]
enum Type {
    /// Its bytes.
    Scalar(u32),
    /// Of which type, and how many.
    Vector(u32, u32),
    /// The same of columns.
    Matrix(u32, u32),
    /// Of which type, and the constant that counts them.
    Array(u32, u32),
    Struct(Vec<u32>),
    /// To which type.
    Pointer(u32),
}

/// How deep types lie in each other: far more than compilers make.
const DEPTH: u32 = 16;
/// How many types are looked at for the sizes of all push constants. A block has some tens of
/// members, and structures that have each other several times would take for ever.
const LOOKS: u32 = 4096;

impl Interface {
    /// Takes what an instruction says of resources.
    pub(super) fn read(&mut self, instruction: &[u32]) {
        let Some((first, rest)) = instruction.split_first() else { return };
        let mut known = |id: &u32, kind| drop(self.types.insert(*id, kind));
        match (first & 0xFFFF, rest) {
            (OP_TYPE_INT | OP_TYPE_FLOAT, [id, bits, ..]) => known(id, Type::Scalar(bits / 8)),
            (OP_TYPE_VECTOR, [id, of, count]) => known(id, Type::Vector(*of, *count)),
            (OP_TYPE_MATRIX, [id, of, count]) => known(id, Type::Matrix(*of, *count)),
            (OP_TYPE_ARRAY, [id, of, length]) => known(id, Type::Array(*of, *length)),
            (OP_TYPE_STRUCT, [id, members @ ..]) => known(id, Type::Struct(members.to_vec())),
            (OP_TYPE_POINTER, [id, _, to]) => known(id, Type::Pointer(*to)),
            (OP_CONSTANT, [_, id, value]) => drop(self.constants.insert(*id, *value)),
            (
                OP_VARIABLE,
                [of, id, class @ (UNIFORM_CONSTANT | UNIFORM | PUSH_CONSTANT | STORAGE_BUFFER), ..],
            ) => {
                self.variables.push((*class, *of, *id));
            }
            (OP_DECORATE, [id, decoration, value @ ..]) => {
                self.decorations.insert((*id, *decoration), value.first().copied().unwrap_or(0));
            }
            (OP_MEMBER_DECORATE, [id, member, decoration, value @ ..]) => {
                self.members
                    .insert((*id, *member, *decoration), value.first().copied().unwrap_or(0));
            }
            (OP_GROUP_DECORATE | OP_GROUP_MEMBER_DECORATE, _) => self.has_groups = true,
            _ => {}
        }
    }

    /// Does the shader ask for nothing but the operands and the words of `signature`? It may use
    /// fewer: a compiler leaves out what has no effect.
    pub(super) fn check(&self, signature: &Signature) -> Result<()> {
        if self.has_groups {
            return unsupported(
                "the shader has groups of decorations",
                "compile it with a newer compiler: they are deprecated",
            );
        }
        let (words, mut looks) = (words(signature)?, LOOKS);
        for &(class, pointer, id) in &self.variables {
            let Some(Type::Pointer(block)) = self.types.get(&pointer) else { continue };
            match class {
                PUSH_CONSTANT => self.check_words(*block, &words, &mut looks)?,
                STORAGE_BUFFER => self.check_buffer(id, *block, signature.operands().len())?,
                // So compilers for Vulkan 1.0 write a storage buffer.
                UNIFORM if self.decorations.contains_key(&(*block, BUFFER_BLOCK)) => {
                    self.check_buffer(id, *block, signature.operands().len())?;
                }
                _ => {
                    return unsupported(
                        "the shader has an image, a sampler or a uniform block",
                        "give it storage buffers and push constants",
                    );
                }
            }
        }
        Ok(())
    }

    /// A storage buffer: one block, at set 0 and an operand's number.
    fn check_buffer(&self, id: u32, block: u32, operands: usize) -> Result<()> {
        if !matches!(self.types.get(&block), Some(Type::Struct(_))) {
            return unsupported(
                "the shader has an array of buffers",
                "give each a binding of its own",
            );
        }
        let at = |decoration| self.decorations.get(&(id, decoration)).copied();
        let (Some(set), Some(binding)) = (at(DESCRIPTOR_SET), at(BINDING)) else {
            return unsupported(
                "a buffer of the shader has no descriptor set or no binding",
                "declare both",
            );
        };
        within("the descriptor set of a shader's buffer", set.into(), 0, 0)?;
        within(
            "the binding of a shader's buffer",
            binding.into(),
            0,
            (operands as u64).saturating_sub(1),
        )
    }

    /// Push constants: each member lies inside one parameter.
    fn check_words(&self, block: u32, words: &[Range<u64>], looks: &mut u32) -> Result<()> {
        let Some(Type::Struct(members)) = self.types.get(&block) else { return Ok(()) };
        for (member, of) in (0..).zip(members) {
            let at = u64::from(self.members.get(&(block, member, OFFSET)).copied().unwrap_or(0));
            let Some(bytes) = self.size(*of, (block, member), 0, looks) else {
                return unsupported(
                    "the size of a push constant is not known",
                    "declare it by numbers, and not by specialisation constants",
                );
            };
            let parameter = words.iter().find(|parameter| parameter.contains(&at));
            if parameter
                .is_none_or(|parameter| at.checked_add(bytes).is_none_or(|end| end > parameter.end))
            {
                // The last place where so many bytes would be inside.
                let max = words
                    .iter()
                    .rev()
                    .find(|parameter| parameter.start <= at)
                    .map_or(0, |parameter| parameter.end.saturating_sub(bytes));
                let name = "the place in bytes of a shader's push constant, which lies inside one \
                            parameter,";
                return Err(Error::Argument {
                    name,
                    value: at,
                    min: 0,
                    max: max.min(at.saturating_sub(1)),
                    multiple_of: 1,
                });
            }
        }
        Ok(())
    }

    /// The bytes of a type, from its first to its last. `of` is the member that has it, whose
    /// decorations say how a matrix lies. `None`: it is not known, or too deep, or takes more than
    /// `looks`.
    fn size(&self, id: u32, of: (u32, u32), depth: u32, looks: &mut u32) -> Option<u64> {
        *looks = looks.checked_sub(1)?;
        let deeper = depth + 1;
        let mut size = |id| if depth < DEPTH { self.size(id, of, deeper, looks) } else { None };
        match self.types.get(&id)? {
            Type::Scalar(bytes) => Some((*bytes).into()),
            Type::Vector(each, count) => size(*each)?.checked_mul((*count).into()),
            Type::Matrix(column, columns) => {
                let stride = u64::from(*self.members.get(&(of.0, of.1, MATRIX_STRIDE))?);
                let Some(Type::Vector(each, rows)) = self.types.get(column) else { return None };
                let is_by_rows = self.members.contains_key(&(of.0, of.1, ROW_MAJOR));
                let (runs, long) = if is_by_rows { (rows, columns) } else { (columns, rows) };
                stride
                    .checked_mul(u64::from(*runs).checked_sub(1)?)?
                    .checked_add(size(*each)?.checked_mul((*long).into())?)
            }
            Type::Array(each, length) => {
                let stride = u64::from(*self.decorations.get(&(id, ARRAY_STRIDE))?);
                let last = u64::from(*self.constants.get(length)?).checked_sub(1)?;
                stride.checked_mul(last)?.checked_add(size(*each)?)
            }
            Type::Struct(members) => {
                let end = |(member, of): (u32, &u32)| {
                    let at = u64::from(*self.members.get(&(id, member, OFFSET))?);
                    if depth < DEPTH {
                        at.checked_add(self.size(*of, (id, member), deeper, looks)?)
                    } else {
                        None
                    }
                };
                (0..).zip(members).map(end).try_fold(0, |most: u64, end| Some(most.max(end?)))
            }
            // An address in a buffer (`PhysicalStorageBuffer64`).
            Type::Pointer(_) => Some(8),
        }
    }
}

/// Where each parameter of words lies, in bytes.
pub(super) fn words(signature: &Signature) -> Result<Vec<Range<u64>>> {
    let none = [0; Signature::MAX_WORDS];
    let (_, arguments) = signature.arguments(none.get(..signature.words()).unwrap_or(&none))?;
    let mut end = 0;
    let range = |argument| match argument {
        Argument::Words(words) => {
            let start = end;
            end += 4 * words.len() as u64;
            Some(start..end)
        }
        Argument::Operand(_) => None,
    };
    Ok(arguments.filter_map(range).collect())
}

const fn unsupported<T>(what: &'static str, fix: &'static str) -> Result<T> {
    Err(Error::Unsupported { what, fix })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use contigo::OperandSpec;
    use contigo::job::Parameter::{Operand, Words};

    /// A module of these instructions, without their first halves.
    fn module(instructions: &[&[u32]]) -> Interface {
        let mut interface = Interface::default();
        instructions.iter().for_each(|instruction| interface.read(instruction));
        interface
    }

    fn two() -> Signature {
        Signature::new("two", &[Operand(OperandSpec::in_out()), Words(1)]).unwrap()
    }

    fn refused(instructions: &[&[u32]]) -> Option<Error> {
        module(instructions)
            .check(&Signature::new("any", &[Operand(OperandSpec::in_out())]).unwrap())
            .err()
    }

    fn is_unsupported(instructions: &[&[u32]], word: &str) -> bool {
        let refused = refused(instructions);
        matches!(refused, Some(Error::Unsupported { what, .. }) if what.contains(word))
    }

    /// %3 is a variable of class `class`, of the structure %1, whose members are words.
    fn variable(class: u32) -> [[u32; 4]; 4] {
        [
            [OP_TYPE_INT, 9, 32, 0],
            [OP_TYPE_STRUCT, 1, 9, 9],
            [OP_TYPE_POINTER, 2, class, 1],
            [OP_VARIABLE, 2, 3, class],
        ]
    }

    #[test]
    fn odd_shaders_are_refused_in_bounded_time() {
        let [int, of_two, pointer, buffer] = variable(STORAGE_BUFFER);
        let (set, binding): (&[u32], &[u32]) =
            (&[OP_DECORATE, 3, DESCRIPTOR_SET, 0], &[OP_DECORATE, 3, BINDING, 0]);
        assert_eq!(refused(&[&int, &of_two, &pointer, &buffer, set, binding]), None);
        assert!(is_unsupported(
            &[&int, &of_two, &pointer, &buffer, set],
            "no descriptor set or no binding"
        ));
        // Decorations by groups.
        assert!(is_unsupported(
            &[&int, &of_two, &pointer, &buffer, &[OP_GROUP_DECORATE, 8, 3]],
            "groups"
        ));
        // Push constants: a structure in itself, an array of unknown length, and the last offset.
        let [int, of_two, pointer, words] = variable(PUSH_CONSTANT);
        let (itself, far): (&[u32], &[u32]) =
            (&[OP_TYPE_STRUCT, 1, 1], &[OP_MEMBER_DECORATE, 1, 1, OFFSET, u32::MAX - 3]);
        assert!(is_unsupported(
            &[itself, &pointer, &words, &[OP_MEMBER_DECORATE, 1, 0, OFFSET, 0]],
            "size of a push constant"
        ));
        assert!(is_unsupported(
            &[&int, &[OP_TYPE_ARRAY, 4, 9, 5], &[OP_TYPE_STRUCT, 1, 4], &pointer, &words],
            "size of a push constant"
        ));
        let shader = [&int[..], &of_two, &pointer, &words, far];
        let name =
            "the place in bytes of a shader's push constant, which lies inside one parameter,";
        assert_eq!(
            refused(&shader),
            Some(Error::Argument { name, value: 0, min: 0, max: 0, multiple_of: 1 })
        );
        let wrong =
            Error::Argument { name, value: (u32::MAX - 3).into(), min: 0, max: 0, multiple_of: 1 };
        assert_eq!(module(&shader).check(&two()), Err(wrong));
    }

    #[test]
    fn a_size_is_found_in_a_bounded_number_of_looks() {
        // Each structure has the next one twice: of 16 there are 2^16 ways to the last.
        let [int, _, pointer, words] = variable(PUSH_CONSTANT);
        let structures: Vec<[u32; 4]> =
            (0..15).map(|at| [OP_TYPE_STRUCT, 100 + at, 101 + at, 101 + at]).collect();
        let offsets = (0..15).flat_map(|at| {
            [
                [OP_MEMBER_DECORATE, 100 + at, 0, OFFSET, 0],
                [OP_MEMBER_DECORATE, 100 + at, 1, OFFSET, 0],
            ]
        });
        let offsets: Vec<[u32; 5]> = offsets.collect();
        let (outer, last, word): (&[u32], &[u32], &[u32]) = (
            &[OP_TYPE_STRUCT, 1, 100],
            &[OP_TYPE_STRUCT, 115, 9],
            &[OP_MEMBER_DECORATE, 115, 0, OFFSET, 0],
        );
        let shader = [outer, last, word, &int, &pointer, &words].into_iter();
        let shader: Vec<&[u32]> = shader
            .chain(structures.iter().map(|s| &s[..]))
            .chain(offsets.iter().map(|s| &s[..]))
            .collect();
        assert!(is_unsupported(&shader, "size of a push constant"));
    }

    #[test]
    fn huge_push_constant_is_refused() {
        let [_, _, pointer, words] = variable(PUSH_CONSTANT);
        // A vector of vectors of bytes, in two structures at the last offset: 2^64 - 1 bytes.
        let most = u32::MAX;
        let shader: [&[u32]; 10] = [
            &[OP_TYPE_INT, 9, 8, 0],
            &[OP_TYPE_VECTOR, 10, 9, most],
            &[OP_TYPE_VECTOR, 11, 10, most],
            &[OP_TYPE_STRUCT, 12, 11],
            &[OP_MEMBER_DECORATE, 12, 0, OFFSET, most],
            &[OP_TYPE_STRUCT, 13, 12],
            &[OP_MEMBER_DECORATE, 13, 0, OFFSET, most],
            &[OP_TYPE_STRUCT, 1, 13],
            &[OP_MEMBER_DECORATE, 1, 0, OFFSET, 1],
            &pointer,
        ];
        let mut shader = module(&shader);
        shader.read(&words);
        assert!(matches!(shader.check(&two()), Err(Error::Argument { value: 1, max: 0, .. })));
    }
}
