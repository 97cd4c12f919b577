//! The packages of Debian that a program or a library needs, read from its headers.

use crate::check::BOARDS_GLIBC;
use crate::needs::Glibc;
use contigo_cross::failure::Result;
use std::path::Path;

/// The C library's files; older systems have several, newer ones one.
const GLIBC: [&str; 7] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libutil.so.1",
    "libresolv.so.2",
];
/// The loader's, whose name has the processor.
const LOADER: &str = "ld-linux";
/// The compiler's library, and its package: the second name is that of images before 2020.
const LIBGCC: (&str, &str) = ("libgcc_s.so.1", "libgcc-s1 | libgcc1");

#[derive(Debug)]
pub(crate) struct Needed<'a> {
    pub(crate) file: &'a Path,
    pub(crate) libraries: &'a [String],
    pub(crate) glibc: Option<&'a Glibc>,
}

/// One line for `Depends`, for all the files of a package.
pub(crate) fn line(files: &[Needed<'_>]) -> Result<String> {
    let mut others = Vec::new();
    for Needed { file, libraries, .. } in files {
        for library in *libraries {
            if GLIBC.contains(&library.as_str()) || library.starts_with(LOADER) {
                continue;
            }
            if library != LIBGCC.0 {
                return Err(anyhow::anyhow!(
                    "{} needs {library}, and the package of Debian that has it is not known",
                    file.display()
                ));
            }
            if !others.contains(&LIBGCC.1) {
                others.push(LIBGCC.1);
            }
        }
    }
    // One that names no version runs with the oldest that is built for.
    let glibc = files
        .iter()
        .filter_map(|file| file.glibc)
        .max()
        .map_or_else(|| BOARDS_GLIBC.to_owned(), ToString::to_string);
    Ok(std::iter::once(format!("libc6 (>= {glibc})"))
        .chain(others.into_iter().map(str::to_owned))
        .collect::<Vec<_>>()
        .join(", "))
}

#[cfg(test)]
mod tests {
    use super::{Needed, line};
    use crate::needs::Glibc;
    use std::path::Path;

    #[test]
    fn the_newest_version_of_all_files_counts() -> Result<(), Box<dyn std::error::Error>> {
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (old, new): (Glibc, Glibc) = ("2.4".parse()?, "2.25".parse()?);
        let (one, other) =
            (names(&["libc.so.6", "ld-linux-armhf.so.3"]), names(&["libgcc_s.so.1", "libm.so.6"]));
        let needed = |libraries, glibc| Needed { file: Path::new("x"), libraries, glibc };
        assert_eq!(line(&[needed(&one, Some(&old)), needed(&one, Some(&new))])?, "libc6 (>= 2.25)");
        assert_eq!(
            line(&[needed(&other, None), needed(&other, None)])?,
            "libc6 (>= 2.27), libgcc-s1 | libgcc1"
        );
        let unknown = names(&["libssl.so.3"]);
        let said = line(&[needed(&unknown, None)]).err().ok_or("it has a package")?.to_string();
        assert!(said.contains("x needs libssl.so.3"), "{said}");
        Ok(())
    }
}
