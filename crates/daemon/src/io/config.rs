//! Configuration files.

use linkbraid_api::{ConfigFile, limits::CONFIG_BYTES_MAX};
use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

/// The files that a path names: itself, or those in the folder that it is, in the order of their names. Of a folder, only
/// files count whose names end in `.toml` and do not begin with a dot.
///
/// # Errors
/// The path is not there, or something cannot be read.
pub fn config_files(path: &Path) -> io::Result<Vec<ConfigFile>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![read(path)?]);
    }
    let mut paths = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.retain(|path| is_config(path));
    paths.sort();
    let located = |path: &Path, error: io::Error| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        io::Error::new(error.kind(), format!("{name}: {error}"))
    };
    paths.iter().map(|path| read(path).map_err(|error| located(path, error))).collect()
}

fn is_config(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".toml") && !name.starts_with('.') && path.is_file()
}

/// The whole text, or the beginning of one that is too long, which is refused later.
fn read(path: &Path) -> io::Result<ConfigFile> {
    let mut text = String::new();
    File::open(path)?.take(CONFIG_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    Ok(ConfigFile { file: path.display().to_string(), text })
}

#[cfg(test)]
mod tests {
    use super::config_files;
    use std::{env, fs, process};

    #[test]
    fn a_folder_stands_for_its_files_in_the_order_of_their_names() {
        let folder = env::temp_dir().join(format!("linkbraid-config-{}", process::id()));
        fs::create_dir_all(folder.join("sub.toml")).unwrap();
        for name in ["20-b.toml", "10-a.toml", "README", ".hidden.toml", "old.toml~"] {
            fs::write(folder.join(name), name).unwrap();
        }
        let found = config_files(&folder);
        let one = config_files(&folder.join("README"));
        fs::write(folder.join("30-c.toml"), b"\xff").unwrap();
        let bad = config_files(&folder);
        fs::remove_dir_all(&folder).unwrap();
        let names: Vec<String> = found.unwrap().into_iter().map(|file| file.text).collect();
        assert_eq!(names, ["10-a.toml", "20-b.toml"]);
        assert_eq!(one.unwrap()[0].text, "README", "a file that is named counts, whatever its name");
        assert!(bad.unwrap_err().to_string().starts_with("30-c.toml: "), "the file is named");
        assert_eq!(config_files(&folder).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    }
}
