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
    FileCalls, change,
    content::{self, FileWriteTarget},
    convert::{descriptor_stat, file_identity, metadata_hash, to_error_code, to_timestamps},
    file_handle::{FileHandle, FileHandleKind},
    listing::FolderListing,
    mount::GrantedMount,
    open::{PathOpenRequest, open_path},
    path_metadata,
    resolve::FinalSymlinkMode,
    run_blocking,
    stream::{FileInputStream, FileOutputStream},
    write_access::request_write_access,
};

/// A descriptor in the types of WASI's bindings. The entry in the table is a [`FileHandle`] of our
/// own.
type Fd = Resource<Descriptor>;

fn final_symlink_mode(flags: PathFlags) -> FinalSymlinkMode {
    match flags.contains(PathFlags::SYMLINK_FOLLOW) {
        true => FinalSymlinkMode::Follow,
        false => FinalSymlinkMode::NoFollow,
    }
}

impl FileCalls<'_> {
    /// The file or folder of a descriptor. A descriptor that does not exist is a trap.
    fn find_file_handle(&self, fd: &Fd) -> FsResult<Arc<FileHandle>> {
        Ok(Arc::clone(self.table.get(&Resource::<Arc<FileHandle>>::new_borrow(fd.rep()))?))
    }

    fn find_folder_handle(&self, fd: &Fd) -> FsResult<Arc<FileHandle>> {
        let handle = self.find_file_handle(fd)?;
        match handle.is_folder() {
            true => Ok(handle),
            false => Err(ErrorCode::NotDirectory.into()),
        }
    }

    fn push_file_handle(&mut self, handle: FileHandle) -> FsResult<Fd> {
        let resource = self.table.push(Arc::new(handle))?;
        Ok(Resource::new_own(resource.rep()))
    }

    fn open_output_stream(
        &mut self,
        fd: &Fd,
        target: FileWriteTarget,
    ) -> FsResult<Resource<DynOutputStream>> {
        let file = self.find_file_handle(fd)?;
        file.check_writable()?;
        file.check_change_grant()?;
        let stream: DynOutputStream = Box::new(FileOutputStream::new(file, target));
        Ok(self.table.push(stream)?)
    }
}

/// Runs an operation on an open file or folder, if the current grant allows it.
async fn run_permitted<R: Send + 'static>(
    handle: Arc<FileHandle>,
    work: impl FnOnce(&GrantedMount, &FileHandle) -> Result<R, ErrorCode> + Send + 'static,
) -> FsResult<R> {
    let granted_mount = handle.check_grant()?;
    Ok(run_blocking(move || work(&granted_mount, &handle)).await?)
}

/// Runs an operation that changes an open file or folder, if the current grant allows it.
async fn run_permitted_change<R: Send + 'static>(
    handle: Arc<FileHandle>,
    work: impl FnOnce(&GrantedMount, &FileHandle) -> Result<R, ErrorCode> + Send + 'static,
) -> FsResult<R> {
    let granted_mount = handle.check_change_grant()?;
    Ok(run_blocking(move || work(&granted_mount, &handle)).await?)
}

/// A change that involves two paths.
type TwoPathOperation =
    fn(&GrantedMount, (&FileHandle, &str), (&FileHandle, &str)) -> Result<(), ErrorCode>;

/// Asks for write access to the folder that gets a name. Nothing is asked about two mounts, because
/// a name cannot get from one to the other.
async fn request_two_folders(old: &FileHandle, new: &FileHandle, new_path: &str) -> FsResult<()> {
    match change::check_same_mount(old, new) {
        Ok(()) => request_write_access(new, new_path).await,
        Err(_) => Ok(()),
    }
}

/// Runs an operation on two open folders, if the current grant allows both.
async fn run_on_two_folders(
    old: (Arc<FileHandle>, String),
    new: (Arc<FileHandle>, String),
    work: TwoPathOperation,
) -> FsResult<()> {
    new.0.check_grant()?;
    run_permitted(old.0, move |granted_mount, from| {
        work(granted_mount, (from, &old.1), (&new.0, &new.1))
    })
    .await
}

impl preopens::Host for FileCalls<'_> {
    /// Lists the mounts that the current grant still has.
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Fd, String)>> {
        let mut folders = Vec::new();
        for mount in self.files.mounts.clone() {
            if mount.check_grant("".as_ref()).is_ok() {
                let fd = self.push_file_handle(FileHandle::from_mount_root(&mount))?;
                folders.push((fd, mount.mount_path().to_owned()));
            }
        }
        Ok(folders)
    }
}

impl Host for FileCalls<'_> {
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

impl HostDescriptor for FileCalls<'_> {
    fn read_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        let file = self.find_file_handle(&fd)?;
        file.check_readable()?;
        file.check_grant()?;
        let stream: DynInputStream = Box::new(FileInputStream::new(file, offset));
        Ok(self.table.push(stream)?)
    }

    fn write_via_stream(
        &mut self,
        fd: Fd,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.open_output_stream(&fd, FileWriteTarget::At(offset))
    }

    fn append_via_stream(&mut self, fd: Fd) -> FsResult<Resource<DynOutputStream>> {
        self.open_output_stream(&fd, FileWriteTarget::End)
    }

    /// Checks the descriptor only: the system reads ahead as it sees fit.
    async fn advise(&mut self, fd: Fd, _: Filesize, _: Filesize, _: Advice) -> FsResult<()> {
        let handle = self.find_file_handle(&fd)?;
        handle.check_grant()?;
        match handle.kind {
            FileHandleKind::File { .. } => Ok(()),
            FileHandleKind::Folder => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    async fn sync_data(&mut self, fd: Fd) -> FsResult<()> {
        let handle = self.find_file_handle(&fd)?;
        run_permitted(handle, |_, handle| content::sync_file(handle, false)).await
    }

    async fn get_flags(&mut self, fd: Fd) -> FsResult<DescriptorFlags> {
        let handle = self.find_file_handle(&fd)?;
        let granted_mount = handle.check_grant()?;
        Ok(match handle.kind {
            FileHandleKind::File { reads: true, writes: true, .. } => {
                DescriptorFlags::READ | DescriptorFlags::WRITE
            }
            FileHandleKind::File { writes: true, .. } => DescriptorFlags::WRITE,
            FileHandleKind::File { .. } => DescriptorFlags::READ,
            FileHandleKind::Folder if granted_mount.is_writable() => {
                DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY
            }
            FileHandleKind::Folder => DescriptorFlags::READ,
        })
    }

    async fn get_type(&mut self, fd: Fd) -> FsResult<DescriptorType> {
        let handle = self.find_file_handle(&fd)?;
        handle.check_grant()?;
        Ok(match handle.kind {
            FileHandleKind::File { .. } => DescriptorType::RegularFile,
            FileHandleKind::Folder => DescriptorType::Directory,
        })
    }

    async fn set_size(&mut self, fd: Fd, size: Filesize) -> FsResult<()> {
        let file = self.find_file_handle(&fd)?;
        file.check_writable()?;
        run_permitted_change(file, move |granted_mount, file| {
            content::set_size(granted_mount, file, size)
        })
        .await
    }

    async fn set_times(
        &mut self,
        fd: Fd,
        access: NewTimestamp,
        modification: NewTimestamp,
    ) -> FsResult<()> {
        let times = to_timestamps(access, modification)?;
        let handle = self.find_file_handle(&fd)?;
        run_permitted_change(handle, move |granted_mount, handle| {
            content::set_times(granted_mount, handle, &times)
        })
        .await
    }

    async fn read(
        &mut self,
        fd: Fd,
        length: Filesize,
        offset: Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        let file = self.find_file_handle(&fd)?;
        file.check_readable()?;
        let most_bytes = usize::try_from(length).unwrap_or(usize::MAX);
        let bytes =
            run_permitted(file, move |_, file| content::read_bytes(file, offset, most_bytes))
                .await?;
        let is_end = bytes.is_empty();
        Ok((bytes, is_end))
    }

    async fn write(&mut self, fd: Fd, bytes: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        let file = self.find_file_handle(&fd)?;
        file.check_writable()?;
        let written_bytes = bytes.len() as Filesize;
        let write = move |granted_mount: &GrantedMount, file: &FileHandle| {
            content::write_bytes(granted_mount, file, FileWriteTarget::At(offset), &bytes)
        };
        run_permitted_change(file, write).await?;
        Ok(written_bytes)
    }

    async fn read_directory(&mut self, fd: Fd) -> FsResult<Resource<ReaddirIterator>> {
        let folder = self.find_folder_handle(&fd)?;
        let listing = run_permitted(folder, FolderListing::open).await?;
        let resource = self.table.push(Arc::new(listing))?;
        Ok(Resource::new_own(resource.rep()))
    }

    async fn sync(&mut self, fd: Fd) -> FsResult<()> {
        let handle = self.find_file_handle(&fd)?;
        run_permitted(handle, |_, handle| content::sync_file(handle, true)).await
    }

    async fn create_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let folder = self.find_folder_handle(&fd)?;
        request_write_access(&folder, &path).await?;
        run_permitted(folder, move |granted_mount, from| {
            change::create_folder(granted_mount, from, &path)
        })
        .await
    }

    async fn stat(&mut self, fd: Fd) -> FsResult<DescriptorStat> {
        let handle = self.find_file_handle(&fd)?;
        let stat =
            run_permitted(handle, |_, handle| fstat(&handle.fd).map_err(to_error_code)).await?;
        Ok(descriptor_stat(&stat))
    }

    async fn stat_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        let folder = self.find_folder_handle(&fd)?;
        let read_stat = move |granted_mount: &GrantedMount, from: &FileHandle| {
            path_metadata::stat_path(granted_mount, from, &path, final_symlink_mode(flags))
        };
        Ok(descriptor_stat(&run_permitted(folder, read_stat).await?))
    }

    async fn set_times_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
        access: NewTimestamp,
        modification: NewTimestamp,
    ) -> FsResult<()> {
        let times = to_timestamps(access, modification)?;
        let folder = self.find_folder_handle(&fd)?;
        request_write_access(&folder, &path).await?;
        let set = move |granted_mount: &GrantedMount, from: &FileHandle| {
            change::set_times(granted_mount, from, &path, final_symlink_mode(flags), &times)
        };
        run_permitted(folder, set).await
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
        let (old, new) = (self.find_folder_handle(&old)?, self.find_folder_handle(&new)?);
        request_two_folders(&old, &new, &new_path).await?;
        run_on_two_folders((old, old_path), (new, new_path), change::create_hard_link).await
    }

    async fn open_at(
        &mut self,
        fd: Fd,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Fd> {
        let folder = self.find_folder_handle(&fd)?;
        if flags.contains(DescriptorFlags::WRITE)
            || open_flags.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE)
        {
            request_write_access(&folder, &path).await?;
        }
        let request =
            PathOpenRequest { final_symlink: final_symlink_mode(path_flags), open_flags, flags };
        let handle = run_permitted(folder, move |granted_mount, from| {
            open_path(granted_mount, from, &path, request)
        })
        .await?;
        self.push_file_handle(handle)
    }

    async fn readlink_at(&mut self, fd: Fd, path: String) -> FsResult<String> {
        let folder = self.find_folder_handle(&fd)?;
        run_permitted(folder, move |granted_mount, from| {
            path_metadata::read_link(granted_mount, from, &path)
        })
        .await
    }

    async fn remove_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let folder = self.find_folder_handle(&fd)?;
        request_write_access(&folder, &path).await?;
        run_permitted(folder, move |granted_mount, from| {
            change::remove_folder(granted_mount, from, &path)
        })
        .await
    }

    async fn rename_at(
        &mut self,
        old: Fd,
        old_path: String,
        new: Fd,
        new_path: String,
    ) -> FsResult<()> {
        let (old, new) = (self.find_folder_handle(&old)?, self.find_folder_handle(&new)?);
        request_two_folders(&old, &new, &new_path).await?;
        run_on_two_folders((old, old_path), (new, new_path), change::rename_entry).await
    }

    async fn symlink_at(&mut self, fd: Fd, target: String, path: String) -> FsResult<()> {
        let folder = self.find_folder_handle(&fd)?;
        request_write_access(&folder, &path).await?;
        run_permitted(folder, move |granted_mount, from| {
            change::create_symlink(granted_mount, from, &target, &path)
        })
        .await
    }

    async fn unlink_file_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let folder = self.find_folder_handle(&fd)?;
        request_write_access(&folder, &path).await?;
        run_permitted(folder, move |granted_mount, from| {
            change::remove_file(granted_mount, from, &path)
        })
        .await
    }

    async fn is_same_object(&mut self, one: Fd, other: Fd) -> wasmtime::Result<bool> {
        let (one, other) = (self.find_file_handle(&one)?, self.find_file_handle(&other)?);
        let same = run_blocking(move || {
            Ok::<_, rustix::io::Errno>(
                file_identity(&fstat(&one.fd)?) == file_identity(&fstat(&other.fd)?),
            )
        });
        Ok(same.await?)
    }

    async fn metadata_hash(&mut self, fd: Fd) -> FsResult<MetadataHashValue> {
        let handle = self.find_file_handle(&fd)?;
        let stat =
            run_permitted(handle, |_, handle| fstat(&handle.fd).map_err(to_error_code)).await?;
        Ok(metadata_hash(&stat))
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Fd,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        let folder = self.find_folder_handle(&fd)?;
        let read_stat = move |granted_mount: &GrantedMount, from: &FileHandle| {
            path_metadata::stat_path(granted_mount, from, &path, final_symlink_mode(flags))
        };
        Ok(metadata_hash(&run_permitted(folder, read_stat).await?))
    }

    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Arc<FileHandle>>::new_own(fd.rep()))?;
        Ok(())
    }
}

impl HostDirectoryEntryStream for FileCalls<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<ReaddirIterator>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let resource = Resource::<Arc<FolderListing>>::new_borrow(stream.rep());
        let listing = Arc::clone(self.table.get(&resource)?);
        let granted_mount = listing.check_grant()?;
        match listing.next_buffered(&granted_mount) {
            Some(entry) => Ok(Some(entry)),
            None => Ok(run_blocking(move || listing.read_next(&granted_mount)).await?),
        }
    }

    fn drop(&mut self, stream: Resource<ReaddirIterator>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Arc<FolderListing>>::new_own(stream.rep()))?;
        Ok(())
    }
}
