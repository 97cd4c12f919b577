//! The resources of a shader, read from its SPIR-V and compared with a signature. A driver trusts
//! both, and may end the process where they differ.

use contigo::{
    Error, Result,
    kernel::{Argument, Signature},
};

// SPIR-V specification, 3.42 "Instructions", 3.7 "Storage Class", 3.20 "Decoration".
const OP_TYPE_INT: u32 = 21;
const OP_TYPE_FLOAT: u32 = 22;
const OP_TYPE_VECTOR: u32 = 23;
const OP_TYPE_STRUCT: u32 = 30;
const OP_TYPE_POINTER: u32 = 32;
const OP_VARIABLE: u32 = 59;
const OP_DECORATE: u32 = 71;
const OP_MEMBER_DECORATE: u32 = 72;
const UNIFORM_CONSTANT: u32 = 0;
const UNIFORM: u32 = 2;
const PUSH_CONSTANT: u32 = 9;
const STORAGE_BUFFER: u32 = 12;
const BUFFER_BLOCK: u32 = 3;
const BINDING: u32 = 33;
const DESCRIPTOR_SET: u32 = 34;
const OFFSET: u32 = 35;

/// The resources of a module.
#[derive(Debug, Default)]
pub(super) struct Interface {
    /// Storage class, pointer type and id of each global variable.
    variables: Vec<(u32, u32, u32)>,
    /// Pointer types, and what they point to.
    pointers: Vec<(u32, u32)>,
    /// Structures, and their members' types.
    structs: Vec<(u32, Vec<u32>)>,
    /// Scalars and vectors, with their bytes.
    sizes: Vec<(u32, u32)>,
    /// Id, decoration, and its first literal.
    decorations: Vec<(u32, u32, u32)>,
    /// Structure, member, and its offset in bytes.
    offsets: Vec<(u32, u32, u32)>,
}

impl Interface {
    /// Takes what an instruction says of resources.
    pub(super) fn read(&mut self, instruction: &[u32]) {
        let Some((first, rest)) = instruction.split_first() else { return };
        match (first & 0xFFFF, rest) {
            (OP_TYPE_INT | OP_TYPE_FLOAT, [id, bits, ..]) => self.sizes.push((*id, bits / 8)),
            (OP_TYPE_VECTOR, [id, of, count]) => {
                let each = self.size(*of).unwrap_or(0);
                self.sizes.push((*id, each.saturating_mul(*count)));
            }
            (OP_TYPE_STRUCT, [id, members @ ..]) => self.structs.push((*id, members.to_vec())),
            (OP_TYPE_POINTER, [id, _, to]) => self.pointers.push((*id, *to)),
            (OP_VARIABLE, [of, id, class, ..]) => self.variables.push((*class, *of, *id)),
            (OP_DECORATE, [id, decoration, value @ ..]) => {
                self.decorations.push((*id, *decoration, value.first().copied().unwrap_or(0)));
            }
            (OP_MEMBER_DECORATE, [id, member, OFFSET, bytes]) => self.offsets.push((*id, *member, *bytes)),
            _ => {}
        }
    }

    fn size(&self, of: u32) -> Option<u32> {
        self.sizes.iter().find(|(id, _)| *id == of).map(|(_, bytes)| *bytes)
    }

    fn decoration(&self, of: u32, which: u32) -> Option<u32> {
        self.decorations.iter().find(|(id, decoration, _)| *id == of && *decoration == which).map(|(.., value)| *value)
    }

    /// The type that a variable's pointer leads to: a structure, or another one; 0, none.
    fn pointed(&self, pointer: u32) -> u32 {
        self.pointers.iter().find(|(id, _)| *id == pointer).map_or(0, |(_, to)| *to)
    }

    /// Are these the operands and the words of `signature`?
    ///
    /// # Errors
    /// [`Error::Unsupported`]: it asks for something else than storage buffers and push constants.
    /// [`Error::Argument`]: a set, a binding, a count or a place is another one.
    pub(super) fn check(&self, signature: &Signature) -> Result<()> {
        let operands = signature.operands().len() as u64;
        let mut bindings = Vec::new();
        for &(class, pointer, id) in &self.variables {
            let block = self.pointed(pointer);
            match class {
                STORAGE_BUFFER => {}
                // So compilers for Vulkan 1.0 write a storage buffer.
                UNIFORM if self.decoration(block, BUFFER_BLOCK).is_some() => {}
                UNIFORM | UNIFORM_CONSTANT => {
                    let what = "the shader has an image, a sampler or a uniform block";
                    return Err(Error::Unsupported { what, fix: "give it storage buffers and push constants" });
                }
                _ => continue,
            }
            if self.structs.iter().all(|(of, _)| *of != block) {
                return Err(Error::Unsupported { what: "the shader has an array of buffers", fix: "give each a binding of its own" });
            }
            exactly("the descriptor set of a shader's buffer", self.decoration(id, DESCRIPTOR_SET).unwrap_or(0).into(), 0)?;
            let (value, max) = (u64::from(self.decoration(id, BINDING).unwrap_or(0)), operands.saturating_sub(1));
            if value > max {
                return Err(Error::Argument { name: "the binding of a shader's buffer", value, min: 0, max, multiple_of: 1 });
            }
            if !bindings.contains(&value) {
                bindings.push(value);
            }
        }
        exactly("the count of a kernel's operands", operands, bindings.len() as u64)?;
        self.check_words(signature)
    }

    /// Are the push constants where the signature's words are?
    fn check_words(&self, signature: &Signature) -> Result<()> {
        let block = self.variables.iter().find(|(class, ..)| *class == PUSH_CONSTANT).map(|(_, pointer, _)| self.pointed(*pointer));
        let members: Vec<_> = self.offsets.iter().filter(|(of, ..)| Some(*of) == block).map(|(_, member, at)| (*at, *member)).collect();
        let (mut parameters, mut bytes) = (Vec::new(), 0);
        let none = [0; Signature::MAX_WORDS];
        let (_, arguments) = signature.arguments(none.get(..signature.words()).unwrap_or(&none))?;
        for argument in arguments {
            if let Argument::Words(words) = argument {
                // 64 words at most.
                let len = u32::try_from(4 * words.len()).unwrap_or(u32::MAX);
                parameters.push(bytes..bytes + len);
                bytes += len;
            }
        }
        if let Some((at, member)) = members.iter().max() {
            let types = self.structs.iter().find(|(of, _)| Some(*of) == block).map(|(_, members)| members);
            let last = types.and_then(|types| types.get(usize::try_from(*member).ok()?)).and_then(|of| self.size(*of));
            // Of an array or a structure the size is not looked for.
            if let Some(size) = last {
                exactly("bytes of a kernel's argument words", bytes.into(), at.saturating_add(size).next_multiple_of(4).into())?;
            }
        } else {
            exactly("bytes of a kernel's argument words", bytes.into(), 0)?;
        }
        for (at, _) in members {
            // A parameter of more than two words is a structure, whose members lie inside.
            let inside = parameters.iter().find(|parameter| parameter.contains(&at));
            let begins = inside.map(|parameter| if parameter.len() > 8 { at } else { parameter.start });
            exactly("the place of a push constant, in bytes,", at.into(), begins.unwrap_or(bytes).into())?;
        }
        Ok(())
    }
}

fn exactly(name: &'static str, value: u64, wanted: u64) -> Result<()> {
    if value == wanted { Ok(()) } else { Err(Error::Argument { name, value, min: wanted, max: wanted, multiple_of: 1 }) }
}
