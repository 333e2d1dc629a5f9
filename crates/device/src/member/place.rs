//! Whether a path still leads to the member that was opened there.

use super::{Kind, Member, Members};
use block::DevIndex;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// What has become of an open member's path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whereabouts {
    /// It leads to the member, or nowhere at present (a link that is being made anew).
    Here,
    /// The file was deleted: it is gone when it is closed.
    Deleted,
    /// It leads to another file or device: whoever opens it next time finds that one.
    Elsewhere,
}

impl Member {
    /// What has become of its path. That may hang where it lies on a file system that hangs.
    pub fn whereabouts(&self) -> Whereabouts {
        let Ok(own) = self.file().metadata() else { return Whereabouts::Here };
        if self.kind == Kind::File && own.nlink() == 0 {
            return Whereabouts::Deleted;
        }
        let Ok(named) = fs::metadata(&self.path) else { return Whereabouts::Here };
        let same = match self.kind {
            Kind::File => (own.dev(), own.ino()) == (named.dev(), named.ino()),
            Kind::Block => own.rdev() == named.rdev(),
        };
        if same { Whereabouts::Here } else { Whereabouts::Elsewhere }
    }
}

impl Members {
    /// What has become of a member's path; an absent member counts as where it was.
    pub fn whereabouts(&self, dev: DevIndex) -> Whereabouts {
        self.get(dev).map_or(Whereabouts::Here, Member::whereabouts)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::member::OpenOptions;

    #[test]
    fn a_path_that_leads_elsewhere_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("member");
        let make = |path: &std::path::Path| fs::write(path, [0; 8192]).unwrap();
        make(&path);
        let members = Members::open(&[Some(path.clone()), None], OpenOptions::default()).unwrap();
        let whereabouts = || members.whereabouts(DevIndex::new(0));
        assert_eq!(whereabouts(), Whereabouts::Here);
        fs::rename(&path, dir.path().join("moved")).unwrap();
        assert_eq!(whereabouts(), Whereabouts::Here, "moved, but not gone");
        make(&path);
        assert_eq!(whereabouts(), Whereabouts::Elsewhere);
        fs::remove_file(dir.path().join("moved")).unwrap();
        assert_eq!(whereabouts(), Whereabouts::Deleted);
        assert_eq!(members.whereabouts(DevIndex::new(1)), Whereabouts::Here, "absent");
    }
}
