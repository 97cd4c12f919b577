//! `contigo map`: a header of Vitis HLS, completed.

use super::{Outcome, Run};

const HEADER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/xfir_hw.h");
const SAID: [&str; 6] = ["--reads", "x", "--writes", "y", "--length", "x=4*n,y=4*n"];

fn printed(more: &[&str]) -> Result<String, Box<dyn std::error::Error>> {
    let run = Run::of(&[&["map", HEADER][..], &SAID, more].concat())?;
    let out = String::from_utf8(run.output.stdout.clone())?;
    run.ends(0);
    Ok(out)
}

/// Those that the documents have, which are compiled and run.
#[test]
fn map_is_printed_in_three_languages() -> Outcome {
    for (language, file) in [
        ("c", include_str!("../../../../docs/examples/fir_map.h")),
        ("rust", include_str!("../../../../docs/examples/fir_map.rs")),
    ] {
        assert_eq!(printed(&["--as", language])?, file, "{language}");
    }
    let json: serde_json::Value = serde_json::from_str(&printed(&[])?)?;
    assert_eq!(json["pointers"][1]["direction"], "out");
    assert_eq!(json["pointers"][1]["bytes"], "4*n");
    // What was printed is a map like any other.
    let folder = tempfile::TempDir::new()?;
    let file = folder.path().join("fir.json");
    std::fs::write(&file, printed(&[])?)?;
    let again = Run::of(&["map", file.to_str().unwrap_or_default()])?;
    assert_eq!(String::from_utf8(again.output.stdout.clone())?, printed(&[])?);
    Ok(())
}

#[test]
fn wrong_argument_is_refused_with_those_that_there_are() -> Outcome {
    for (args, said) in [
        (&["--reads", "q"][..], "`q`: the kernel has no argument of this name and kind"),
        (&["--length", "x=4*q"], "`x`: its length names `q`, which is no scalar of this kernel"),
        (&["--length", "x=4*n+n"], "as `4*n` or `4*n+120`"),
        (&["--length", "x"], "--length x: it is a pointer and its rule, as x=4*n"),
    ] {
        Run::of(&[&["map", HEADER][..], args].concat())?.ends(1).complains(&[said]);
    }
    // Names that C cannot tell apart, or take.
    let folder = tempfile::TempDir::new()?;
    let file = folder.path().join("kernel.json");
    let text = std::fs::read_to_string(HEADER.replace("xfir_hw.h", "copy.json"))?;
    for (from, to, said) in [
        ("\"name\": \"to\"", "\"name\": \"FROM\"", "`from`: two constants would have its name"),
        ("\"name\": \"to\"", "\"name\": \"map\"", "`map`: two constants would have its name"),
        (
            "\"name\": \"copy\"",
            "\"name\": \"2mm\"",
            "`2mm`: a constant's name begins with a letter",
        ),
    ] {
        std::fs::write(&file, text.replace(from, to))?;
        let file = file.to_str().unwrap_or_default();
        Run::of(&["map", file, "--as", "c"])?.ends(1).complains(&[said]);
    }
    Run::of(&["map", HEADER, "--as", "ada"])?.ends(2).complains(&["json, c, rust"]);
    Run::of(&["map", "/dev/zero"])?.ends(1).complains(&["/dev/zero"]);
    Ok(())
}
