//! The functions of `wasi:filesystem`. Each looks up its descriptors, asks the grant, and leaves
//! the work to a thread that may block.

use std::sync::Arc;

use rustix::fs::fstat;
use wasmtime::component::Resource;
use wasmtime_wasi::{
    filesystem::Descriptor,
    p2::{
        DynInputStream, DynOutputStream, FsError, FsResult, ReaddirIterator,
        bindings::filesystem::{
            preopens,
            types::{
                Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode,
                Filesize, Host, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue,
                NewTimestamp, OpenFlags, PathFlags,
            },
        },
    },
};

use super::{
    change,
    content::{self, Target},
    convert::{code, descriptor_stat, file_key, metadata_hash, timestamps},
    listing::Listing,
    look,
    mount::Present,
    on_disk,
    open::{Wish, open},
    opened::{Kind, Opened},
    resolve::LastLink,
    stream::{FileInput, FileOutput},
};
use crate::guest::Guest;

/// A descriptor in the types of WASI's bindings. The entry in the table is an [`Opened`] of our
/// own.
type Fd = Resource<Descriptor>;

fn last_link(flags: PathFlags) -> LastLink {
    match flags.contains(PathFlags::SYMLINK_FOLLOW) {
        true => LastLink::Followed,
        false => LastLink::Meant,
    }
}

impl Guest {
    /// The file or folder of a descriptor. A descriptor that does not exist is a trap.
    fn opened(&self, fd: &Fd) -> FsResult<Arc<Opened>> {
        Ok(Arc::clone(self.table.get(&Resource::<Arc<Opened>>::new_borrow(fd.rep()))?))
    }

    fn folder(&self, fd: &Fd) -> FsResult<Arc<Opened>> {
        let opened = self.opened(fd)?;
        match opened.is_folder() {
            true => Ok(opened),
            false => Err(ErrorCode::NotDirectory.into()),
        }
    }

    fn hold(&mut self, opened: Opened) -> FsResult<Fd> {
        let held = self.table.push(Arc::new(opened))?;
        Ok(Resource::new_own(held.rep()))
    }

    fn output(&mut self, fd: &Fd, target: Target) -> FsResult<Resource<DynOutputStream>> {
        let file = self.opened(fd)?;
        file.for_writing()?;
        file.present_for_change()?;
        let stream: DynOutputStream = Box::new(FileOutput::new(file, target));
        Ok(self.table.push(stream)?)
    }
}

/// Runs an operation on an open file or folder, if the current grant allows it.
async fn within<R: Send + 'static>(
    opened: Arc<Opened>,
    work: impl FnOnce(&Present, &Opened) -> Result<R, ErrorCode> + Send + 'static,
) -> FsResult<R> {
    let present = opened.present()?;
    Ok(on_disk(move || work(&present, &opened)).await?)
}

/// Runs an operation that changes an open file or folder, if the current grant allows it.
async fn changing<R: Send + 'static>(
    opened: Arc<Opened>,
    work: impl FnOnce(&Present, &Opened) -> Result<R, ErrorCode> + Send + 'static,
) -> FsResult<R> {
    let present = opened.present_for_change()?;
    Ok(on_disk(move || work(&present, &opened)).await?)
}

/// A change that involves two paths.
type Between = fn(&Present, (&Opened, &str), (&Opened, &str)) -> Result<(), ErrorCode>;

/// Runs an operation on two open folders, if the current grant allows both.
async fn between(
    old: (Arc<Opened>, String),
    new: (Arc<Opened>, String),
    work: Between,
) -> FsResult<()> {
    new.0.present()?;
    within(old.0, move |present, from| work(present, (from, &old.1), (&new.0, &new.1))).await
}

impl preopens::Host for Guest {
    /// Lists the mounts that the current grant still has.
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Fd, String)>> {
        let mut folders = Vec::new();
        for mount in self.files.mounts.clone() {
            if mount.present("".as_ref()).is_ok() {
                let fd = self.hold(Opened::root(&mount))?;
                folders.push((fd, mount.guest().to_owned()));
            }
        }
        Ok(folders)
    }
}

impl Host for Guest {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        Ok(self.table.get(&error)?.downcast_ref::<ErrorCode>().copied())
    }
}

impl HostDescriptor for Guest {
    fn read_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        let file = self.opened(&fd)?;
        file.for_reading()?;
        file.present()?;
        let stream: DynInputStream = Box::new(FileInput::new(file, offset));
        Ok(self.table.push(stream)?)
    }

    fn write_via_stream(
        &mut self,
        fd: Fd,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.output(&fd, Target::At(offset))
    }

    fn append_via_stream(&mut self, fd: Fd) -> FsResult<Resource<DynOutputStream>> {
        self.output(&fd, Target::End)
    }

    /// Checks the descriptor only: the system reads ahead as it sees fit.
    async fn advise(&mut self, fd: Fd, _: Filesize, _: Filesize, _: Advice) -> FsResult<()> {
        let opened = self.opened(&fd)?;
        opened.present()?;
        match opened.kind {
            Kind::File { .. } => Ok(()),
            Kind::Folder => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    async fn sync_data(&mut self, fd: Fd) -> FsResult<()> {
        let opened = self.opened(&fd)?;
        within(opened, |_, opened| content::sync(opened, false)).await
    }

    async fn get_flags(&mut self, fd: Fd) -> FsResult<DescriptorFlags> {
        let opened = self.opened(&fd)?;
        let present = opened.present()?;
        Ok(match opened.kind {
            Kind::File { reads: true, writes: true, .. } => {
                DescriptorFlags::READ | DescriptorFlags::WRITE
            }
            Kind::File { writes: true, .. } => DescriptorFlags::WRITE,
            Kind::File { .. } => DescriptorFlags::READ,
            Kind::Folder if present.is_writable() => {
                DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY
            }
            Kind::Folder => DescriptorFlags::READ,
        })
    }

    async fn get_type(&mut self, fd: Fd) -> FsResult<DescriptorType> {
        let opened = self.opened(&fd)?;
        opened.present()?;
        Ok(match opened.kind {
            Kind::File { .. } => DescriptorType::RegularFile,
            Kind::Folder => DescriptorType::Directory,
        })
    }

    async fn set_size(&mut self, fd: Fd, size: Filesize) -> FsResult<()> {
        let file = self.opened(&fd)?;
        file.for_writing()?;
        changing(file, move |present, file| content::set_size(present, file, size)).await
    }

    async fn set_times(
        &mut self,
        fd: Fd,
        access: NewTimestamp,
        modification: NewTimestamp,
    ) -> FsResult<()> {
        let times = timestamps(access, modification)?;
        let opened = self.opened(&fd)?;
        changing(opened, move |present, opened| content::set_times(present, opened, &times)).await
    }

    async fn read(
        &mut self,
        fd: Fd,
        length: Filesize,
        offset: Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        let file = self.opened(&fd)?;
        file.for_reading()?;
        let most_bytes = usize::try_from(length).unwrap_or(usize::MAX);
        let bytes = within(file, move |_, file| content::read(file, offset, most_bytes)).await?;
        let is_end = bytes.is_empty();
        Ok((bytes, is_end))
    }

    async fn write(&mut self, fd: Fd, bytes: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        let file = self.opened(&fd)?;
        file.for_writing()?;
        let written_bytes = bytes.len() as Filesize;
        let write = move |present: &Present, file: &Opened| {
            content::write(present, file, Target::At(offset), &bytes)
        };
        changing(file, write).await?;
        Ok(written_bytes)
    }

    async fn read_directory(&mut self, fd: Fd) -> FsResult<Resource<ReaddirIterator>> {
        let folder = self.folder(&fd)?;
        let listing = within(folder, Listing::of).await?;
        let held = self.table.push(Arc::new(listing))?;
        Ok(Resource::new_own(held.rep()))
    }

    async fn sync(&mut self, fd: Fd) -> FsResult<()> {
        let opened = self.opened(&fd)?;
        within(opened, |_, opened| content::sync(opened, true)).await
    }

    async fn create_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let folder = self.folder(&fd)?;
        within(folder, move |present, from| change::make_folder(present, from, &path)).await
    }

    async fn stat(&mut self, fd: Fd) -> FsResult<DescriptorStat> {
        let opened = self.opened(&fd)?;
        let stat = within(opened, |_, opened| fstat(&opened.fd).map_err(code)).await?;
        Ok(descriptor_stat(&stat))
    }

    async fn stat_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        let folder = self.folder(&fd)?;
        let look = move |present: &Present, from: &Opened| {
            look::stat(present, from, &path, last_link(flags))
        };
        Ok(descriptor_stat(&within(folder, look).await?))
    }

    async fn set_times_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
        access: NewTimestamp,
        modification: NewTimestamp,
    ) -> FsResult<()> {
        let times = timestamps(access, modification)?;
        let folder = self.folder(&fd)?;
        let set = move |present: &Present, from: &Opened| {
            change::set_times(present, from, &path, last_link(flags), &times)
        };
        within(folder, set).await
    }

    async fn link_at(
        &mut self,
        old: Fd,
        flags: PathFlags,
        old_path: String,
        new: Fd,
        new_path: String,
    ) -> FsResult<()> {
        if flags.contains(PathFlags::SYMLINK_FOLLOW) {
            return Err(ErrorCode::Invalid.into());
        }
        let (old, new) = (self.folder(&old)?, self.folder(&new)?);
        between((old, old_path), (new, new_path), change::add_name).await
    }

    async fn open_at(
        &mut self,
        fd: Fd,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Fd> {
        let folder = self.folder(&fd)?;
        let wish = Wish { last_link: last_link(path_flags), open: open_flags, flags };
        let opened = within(folder, move |present, from| open(present, from, &path, wish)).await?;
        self.hold(opened)
    }

    async fn readlink_at(&mut self, fd: Fd, path: String) -> FsResult<String> {
        let folder = self.folder(&fd)?;
        within(folder, move |present, from| look::read_link(present, from, &path)).await
    }

    async fn remove_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let folder = self.folder(&fd)?;
        within(folder, move |present, from| change::remove_folder(present, from, &path)).await
    }

    async fn rename_at(
        &mut self,
        old: Fd,
        old_path: String,
        new: Fd,
        new_path: String,
    ) -> FsResult<()> {
        let (old, new) = (self.folder(&old)?, self.folder(&new)?);
        between((old, old_path), (new, new_path), change::rename).await
    }

    async fn symlink_at(&mut self, fd: Fd, target: String, path: String) -> FsResult<()> {
        let folder = self.folder(&fd)?;
        within(folder, move |present, from| change::make_link(present, from, &target, &path)).await
    }

    async fn unlink_file_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let folder = self.folder(&fd)?;
        within(folder, move |present, from| change::remove_file(present, from, &path)).await
    }

    async fn is_same_object(&mut self, one: Fd, other: Fd) -> wasmtime::Result<bool> {
        let (one, other) = (self.opened(&one)?, self.opened(&other)?);
        let same = on_disk(move || {
            Ok::<_, rustix::io::Errno>(file_key(&fstat(&one.fd)?) == file_key(&fstat(&other.fd)?))
        });
        Ok(same.await?)
    }

    async fn metadata_hash(&mut self, fd: Fd) -> FsResult<MetadataHashValue> {
        let opened = self.opened(&fd)?;
        let stat = within(opened, |_, opened| fstat(&opened.fd).map_err(code)).await?;
        Ok(metadata_hash(&stat))
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        let folder = self.folder(&fd)?;
        let look = move |present: &Present, from: &Opened| {
            look::stat(present, from, &path, last_link(flags))
        };
        Ok(metadata_hash(&within(folder, look).await?))
    }

    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Arc<Opened>>::new_own(fd.rep()))?;
        Ok(())
    }
}

impl HostDirectoryEntryStream for Guest {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<ReaddirIterator>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let held = Resource::<Arc<Listing>>::new_borrow(stream.rep());
        let listing = Arc::clone(self.table.get(&held)?);
        let present = listing.present()?;
        match listing.next_at_hand(&present) {
            Some(entry) => Ok(Some(entry)),
            None => Ok(on_disk(move || listing.next(&present)).await?),
        }
    }

    fn drop(&mut self, stream: Resource<ReaddirIterator>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Arc<Listing>>::new_own(stream.rep()))?;
        Ok(())
    }
}
