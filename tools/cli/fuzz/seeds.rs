//! Writes the inputs of the bounded tests as a corpus: `cargo run --bin seeds -- FOLDER` makes a
//! file for each case in FOLDER.

use std::path::Path;

#[path = "../tests/mutations/cases.rs"]
mod cases;

use cases::{CAPTURES, RECORDS};

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).expect("the folder of the corpus");
    std::fs::create_dir_all(&folder)?;
    let records = RECORDS.iter().map(|case| (case.args, case.input.to_vec()));
    let captures = CAPTURES
        .iter()
        .map(|(args, options)| (*args, cases::capture(options)));
    for (number, (args, input)) in records.chain(captures).enumerate() {
        let selected = u8::try_from(number).expect("at most 256 cases");
        println!("case-{number}: {args}");
        let bytes = [&[selected, 255], &input[..]].concat();
        std::fs::write(Path::new(&folder).join(format!("case-{number}")), bytes)?;
    }
    Ok(())
}
