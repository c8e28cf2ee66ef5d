# SPDX-License-Identifier: LGPL-2.1-or-later
"""One compute node: Nova's own libvirt driver, whose instances_path is on a mount of LCCFS.

    compute_node.py HOST ADDRESS INSTANCES_PATH SHARED_FOLDER

Reads requests from standard input, one JSON list [method, argument...] in a line, and answers each by a line
{"answer": ...} or {"error": ...}. What Nova logs goes to standard error.

Nova's code is all there, but for: libvirtd (guests.py), the database (an instance is what the request says of it),
Glance (files in SHARED_FOLDER/glance; each download is noted there), Neutron (no networks), and the daemon of privsep.
"""

import json
import os
import pathlib
import shutil
import sys
import time
import traceback

import nova.monkey_patch  # noqa: F401  (first of all, as in nova-compute)
import nova.conf
import nova.privsep
from nova import context as nova_context
from nova import exception
from nova import objects
from nova import utils
from nova.compute import manager
from nova.network import model as network_model
from nova.objects import migrate_data as migrate_data_objects
from nova.tests.unit import fake_instance
from nova.virt import fake as fake_virt
from nova.virt import images
from nova.virt import storage_users
from nova.virt.disk import api as disk_api
from nova.virt.image import model as image_model
from nova.virt.libvirt import driver as libvirt_driver
from nova.virt.libvirt import imagebackend
from nova.virt.libvirt import imagecache
from nova.virt.libvirt import utils as libvirt_utils
from oslo_concurrency import lockutils
from oslo_log import log as logging

import guests
import guide

CONF = nova.conf.CONF
NO_NETWORK = network_model.NetworkInfo([])


class ImageService:
    """Glance, in a folder: NAME has the bytes, NAME.json what is known of them."""

    def __init__(self, folder, host):
        self._folder = folder
        self._host = host

    def get(self, context, image_id, **_):
        try:
            return json.loads((self._folder / f"{image_id}.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise exception.ImageNotFound(image_id=image_id) from None

    def download(self, context, image_id, dest_path=None, **_):
        about = self.get(context, image_id)
        with open(self._folder / "downloads", "a", encoding="utf-8") as downloads:
            downloads.write(f"{image_id} {self._host}\n")
        with open(self._folder / image_id, "rb") as source, open(dest_path, "wb") as target:
            target.write(source.read(1 << 20))
            target.flush()
            if about.get("slow_on", self._host) == self._host:
                time.sleep(about.get("slow_s", 0))
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())

    def update(self, context, image_id, metadata, data=None, **_):
        if data is not None:
            with open(self._folder / image_id, "wb") as target:
                shutil.copyfileobj(data, target)
        about = {"id": image_id, "name": image_id, "disk_format": metadata["disk_format"]}
        (self._folder / f"{image_id}.json").write_text(json.dumps(about), encoding="utf-8")


class Node:
    """What the steps may ask of a compute node. An instance comes as a dict: uuid, image, root_gb and so on."""

    def __init__(self, host, address, instances_path, shared):
        self._shared = shared
        self._images = ImageService(shared / "glance", host)
        self._context = nova_context.get_admin_context()
        self._configure(host, address, instances_path)
        self._database = {}
        self._use_no_database()
        guests.sockets = shared / "sockets"
        self._fixture = guests.install()
        images.IMAGE_API = self._images
        self.driver = libvirt_driver.LibvirtDriver(fake_virt.FakeVirtAPI())
        self.driver._image_api = self._images
        self.driver._network_api.has_port_binding_extension = lambda context: False
        self.driver.init_host(host)

    def _configure(self, host, address, instances_path):
        CONF([], project="nova", default_config_files=[])
        for group, name, value in [
                (None, "host", host), (None, "my_ip", address), (None, "state_path", str(self._shared / host)),
                (None, "default_ephemeral_format", "ext4"), ("libvirt", "virt_type", "qemu"),
                ("libvirt", "cpu_mode", "none"), ("libvirt", "inject_partition", -2), ("vnc", "enabled", False), ("workarounds", "skip_cpu_compare_on_dest", True),
                ("oslo_concurrency", "lock_path", str(self._shared / host))]:
            CONF.set_override(name, value, group=group)
        for section, name, value in guide.settings(instances_path):  # Nova takes no key and no value that it does not know
            CONF.set_override(name, value, group=None if section == "DEFAULT" else section)
        nova.conf.neutron.register_dynamic_opts(CONF)
        nova.conf.devices.register_dynamic_opts(CONF)
        nova.privsep.sys_admin_pctxt.set_client_mode(False)

    def _use_no_database(self):
        objects.register_all()
        objects.Instance.save = lambda *_, **__: None
        objects.BlockDeviceMappingList.bdms_by_instance_uuid = lambda *_, **__: {
            uuid: self._blank_disks(vm) for uuid, vm in self._database.items()}
        for kind in [objects.VirtualInterfaceList, objects.ShareMappingList, objects.BlockDeviceMappingList]:
            kind.get_by_instance_uuid = lambda *_, kind=kind, **__: kind(objects=[])
        objects.InstanceList.get_by_host = lambda *_, **__: objects.InstanceList(objects=[])
        objects.InstanceList.get_by_filters = lambda context, filters, **_: objects.InstanceList(objects=[
            self._instance(vm) for vm in self._database.values() if vm["host"] in filters["host"]])

    def _blank_disks(self, vm):
        def disk(guest_format, size):
            return objects.BlockDeviceMapping(
                self._context, source_type="blank", destination_type="local", device_type="disk", disk_bus="virtio",
                guest_format=guest_format, volume_size=size, boot_index=-1, delete_on_termination=True,
                device_name=None, instance_uuid=vm["uuid"], encrypted=False, encryption_secret_uuid=None,
                encryption_format=None, encryption_options=None, no_device=False)

        disks = []
        if vm.get("swap_mb"):
            disks.append(disk("swap", vm["swap_mb"]))
        if vm.get("ephemeral_gb"):
            disks.append(disk(None, vm["ephemeral_gb"]))
        return objects.BlockDeviceMappingList(objects=disks)

    def _flavor(self, vm):
        return objects.Flavor(
            id=1, name="small", flavorid="1", memory_mb=64, vcpus=1, root_gb=vm["root_gb"],
            ephemeral_gb=vm.get("ephemeral_gb", 0), swap=vm.get("swap_mb", 0), rxtx_factor=1.0, vcpu_weight=1,
            disabled=False, is_public=True, extra_specs={}, projects=[])

    def _instance(self, vm):
        """Nova's object, from what a database would know."""
        CONF.set_override("images_type", vm.get("images_type", "qcow2"), group="libvirt")
        instance = fake_instance.fake_instance_obj(
            self._context, expected_attrs=["metadata", "system_metadata", "pci_devices", "pci_requests"],
            flavor=self._flavor(vm), uuid=vm["uuid"], id=int(vm["uuid"][:7], 16), root_gb=vm["root_gb"],
            ephemeral_gb=vm.get("ephemeral_gb", 0), host=vm["host"], node=vm["host"], image_ref=vm["image"],
            kernel_id="", ramdisk_id="", config_drive="", task_state=vm.get("task_state"),
            vm_state=vm.get("vm_state", "active"), root_device_name="/dev/vda",
            system_metadata={"image_disk_format": "raw", "image_base_image_ref": vm["image"]})
        instance.old_flavor = instance.new_flavor = instance.flavor
        instance.info_cache = objects.InstanceInfoCache(network_info=NO_NETWORK, instance_uuid=vm["uuid"])
        instance.trusted_certs = instance.numa_topology = instance.vcpu_model = None
        instance.resources = None
        return instance

    def _guest(self, vm):
        return self.driver._host.get_guest(self._instance(vm))

    def _qemu(self, vm):
        return self._guest(vm)._domain.qemu

    def _image(self, vm, name="disk"):
        instance = self._instance(vm)
        return self.driver.image_backend.by_name(instance, name)

    # ---- the life of an instance

    def spawn(self, vm):
        instance = self._instance(vm)
        self.driver.spawn(self._context, instance, instance.image_meta, [], None, {}, NO_NETWORK)

    def destroy(self, vm, destroy_disks=True):
        self.driver.destroy(self._context, self._instance(vm), NO_NETWORK, destroy_disks=destroy_disks)

    def power_off(self, vm):
        self.driver.power_off(self._instance(vm))

    def power_on(self, vm):
        self.driver.power_on(self._context, self._instance(vm), NO_NETWORK)

    def is_running(self, vm):
        try:
            return bool(self._guest(vm).is_active())
        except exception.InstanceNotFound:
            return False

    def delete_instance_files(self, vm):
        return self.driver.delete_instance_files(self._instance(vm))

    def instance_on_disk(self, vm):
        return self.driver.instance_on_disk(self._instance(vm))

    def disk_info(self, vm):
        return json.loads(self.driver.get_instance_disk_info(self._instance(vm)))

    # ---- what the guest does

    def guest_io(self, vm, command, disk="vda"):
        answer = self._qemu(vm).say(f'qemu-io {disk} "{command}"')
        if "failed" in answer or "rror" in answer:
            raise RuntimeError(f"{command}: {answer}")
        return answer

    def guest_prints(self, vm, text):
        """On its serial port."""
        for byte in text.encode():
            self._qemu(vm).say(f"o/b 0x3f8 {byte}")

    def console_output(self, vm):
        instance = self._instance(vm)
        path = self.driver._get_console_log_path(instance)
        return self.driver._get_console_output_file(instance, path).decode()

    # ---- the image cache

    def cache_image(self, image):
        return self.driver.cache_image(self._context, image)

    def run_image_cache_manager(self, instances, minimum_age_s=24 * 3600):
        """The periodic task of nova-compute, where `instances` are all that the database has."""
        CONF.set_override("remove_unused_original_minimum_age_seconds", minimum_age_s, group="image_cache")
        CONF.set_override("remove_unused_resized_minimum_age_seconds", minimum_age_s, group="image_cache")
        self._database = {vm["uuid"]: vm for vm in instances}
        manager.ComputeManager._run_image_cache_manager_pass(self, self._context)

    def cache_name(self, image):
        return imagecache.get_cache_fname(image)

    def cache_usage(self):
        return self.driver.image_cache_manager.get_disk_usage()

    def register_storage_use(self, times=1):
        for _ in range(times):
            storage_users.register_storage_use(CONF.instances_path, CONF.host)

    def register_many_users(self, prefix, count):
        for number in range(count):
            storage_users.register_storage_use(CONF.instances_path, f"{prefix}{number}")

    def get_storage_users(self):
        return sorted(storage_users.get_storage_users(CONF.instances_path))

    # ---- resize and migration

    def migrate_disk_and_power_off(self, vm, address, root_gb):
        return self.driver.migrate_disk_and_power_off(
            self._context, self._instance(vm), address, self._flavor(dict(vm, root_gb=root_gb)), NO_NETWORK)

    def finish_migration(self, vm, disk_info, source):
        instance = self._instance(dict(vm, task_state="resize_finish"))
        migration = objects.Migration(source_compute=source, dest_compute=CONF.host)
        self.driver.finish_migration(self._context, migration, instance, disk_info, NO_NETWORK, instance.image_meta,
                                     True, {})

    def finish_revert_migration(self, vm):
        self.driver.finish_revert_migration(self._context, self._instance(vm), NO_NETWORK, objects.Migration())

    def confirm_migration(self, vm):
        self.driver.confirm_migration(self._context, objects.Migration(), self._instance(vm), NO_NETWORK)

    def is_path_shared_with(self, address, path):
        return self.driver._is_path_shared_with(address, path)

    def check_can_live_migrate_destination(self, vm):
        resources = {"disk_available_least": 100, "free_disk_gb": 100}
        data = self.driver.check_can_live_migrate_destination(self._context, self._instance(vm), resources, resources,
                                                              block_migration=None)
        return data.obj_to_primitive()

    def check_can_live_migrate_source(self, vm, data):
        return self.driver.check_can_live_migrate_source(self._context, self._instance(vm),
                                                         self._migrate_data(data)).obj_to_primitive()

    def cleanup_live_migration_destination_check(self, data):
        self.driver.cleanup_live_migration_destination_check(self._context, self._migrate_data(data))

    def pre_live_migration(self, vm, data):
        return self.driver.pre_live_migration(self._context, self._instance(vm), {}, NO_NETWORK, None,
                                              self._migrate_data(data)).obj_to_primitive()

    def domain_xml(self, vm):
        return self._guest(vm).get_xml_desc()

    def receive_guest(self, xml):
        """What libvirtd does at the destination."""
        self.driver._host.get_connection().defineXML(xml).receive()

    def live_migrate(self, vm, address, data):
        self.driver._live_migration_operation(self._context, self._instance(vm), address, False,
                                              self._migrate_data(data), self._guest(vm), [])

    def post_live_migration(self, vm, data):
        instance = self._instance(vm)
        self.driver.post_live_migration(self._context, instance, {}, self._migrate_data(data))
        self.driver.post_live_migration_at_source(self._context, instance, NO_NETWORK)
        self.driver.cleanup(self._context, instance, NO_NETWORK, destroy_disks=False,
                            migrate_data=self._migrate_data(data), destroy_vifs=False)

    def post_live_migration_at_destination(self, vm):
        self.driver.post_live_migration_at_destination(self._context, self._instance(vm), NO_NETWORK)

    def rollback_live_migration_at_destination(self, vm, data):
        self.driver.rollback_live_migration_at_destination(self._context, self._instance(vm), NO_NETWORK, {},
                                                           destroy_disks=False, migrate_data=self._migrate_data(data))

    @staticmethod
    def _migrate_data(primitive):
        return migrate_data_objects.LibvirtLiveMigrateData.obj_from_primitive(primitive)

    def shared_storage_test_file(self, vm):
        return self.driver._create_shared_storage_test_file(self._instance(vm))

    def sees_shared_storage_test_file(self, vm, name):
        return self.driver._check_shared_storage_test_file(name, self._instance(vm))

    def remove_shared_storage_test_file(self, name):
        self.driver._cleanup_shared_storage_test_file(name)

    def shared_instance_file(self, vm):
        return self.driver.check_instance_shared_storage_local(self._context, self._instance(vm))

    def sees_shared_instance_file(self, data):
        return self.driver.check_instance_shared_storage_remote(self._context, data)

    def remove_shared_instance_file(self, data):
        self.driver.check_instance_shared_storage_cleanup(self._context, data)

    # ---- rescue and snapshots

    def rescue(self, vm):
        instance = self._instance(vm)
        self.driver.rescue(self._context, instance, NO_NETWORK, instance.image_meta, "secret", None,
                           objects.ShareMappingList(objects=[]))

    def unrescue(self, vm):
        self.driver.unrescue(self._context, self._instance(vm))

    def snapshot(self, vm, image):
        self._images.update(self._context, image, {"disk_format": "raw"}, None)
        self.driver.snapshot(self._context, self._instance(vm), image, lambda *_, **__: None)

    # ---- single disks

    def image_cache_disk(self, vm, name, image, size):
        """Image.cache of imagebackend, as spawn calls it for a root disk."""
        os.makedirs(libvirt_utils.get_instance_path(self._instance(vm)), exist_ok=True)
        self._image(vm, name).cache(fetch_func=libvirt_utils.fetch_image, context=self._context,
                                    filename=imagecache.get_cache_fname(image), size=size, image_id=image)

    def snapshot_extract(self, vm, target, image_format, name="disk"):
        self._image(vm, name).snapshot_extract(target, image_format)

    def driver_format(self, vm, name="disk"):
        return self._image(vm, name).resolve_driver_format()

    def extend(self, path, image_format, size):
        disk_api.extend(image_model.LocalFileImage(path, image_format), size)

    def disk_size(self, path):
        return disk_api.get_disk_size(path)

    def backing_file(self, path):
        return libvirt_utils.get_disk_backing_file(path, basename=False)

    def create_image(self, path, image_format, size, backing_file=None):
        libvirt_utils.create_image(path, image_format, size, backing_file=backing_file)

    def copy_image(self, source, target):
        libvirt_utils.copy_image(source, target)

    def convert_image(self, source, target, source_format, target_format, privileged=False):
        images.convert_image(source, target, source_format, target_format, run_as_root=privileged)

    def raw_to_qcow2(self, path):
        self.driver._disk_raw_to_qcow2(path)

    def can_preallocate(self, vm):
        imagebackend.Qcow2.can_fallocate = None
        return self._image(vm)._can_fallocate()

    def supports_direct_io(self):
        return nova.privsep.utils.supports_direct_io(CONF.instances_path)

    def disk_cachemode(self):
        return self.driver.disk_cachemode

    def setting(self, section, name):
        value = CONF[name] if section == "DEFAULT" else CONF[section][name]
        return ",".join(value) if isinstance(value, list) else str(value)

    def fs_info(self):
        return libvirt_utils.get_fs_info(CONF.instances_path)

    def chown(self, path, uid, gid, recursive=False):
        nova.privsep.path.chown(path, uid, gid, recursive=recursive)

    def chmod(self, path, mode):
        nova.privsep.path.chmod(path, mode)

    def write_file(self, path, content):
        nova.privsep.path.writefile(path, "w", content)

    def move_tree(self, source, target):
        nova.privsep.path.move_tree(source, target)

    def touch(self, path):
        nova.privsep.path.utime(path)

    def last_bytes(self, path, number):
        return nova.privsep.path.last_bytes(path, number)[0].decode()

    # ---- locks

    def count_up(self, path, times):
        """Adds to the number in a file, each time under Nova's external lock on the shared storage."""
        @utils.synchronized("counter", external=True, lock_path=self._lock_path())
        def add():
            with open(path, encoding="utf-8") as file:
                number = int(file.read())
            with open(path, "w", encoding="utf-8") as file:
                file.write(str(number + 1))

        for _ in range(times):
            add()

    def hold_lock(self, name, seconds, note):
        """Notes the times of taking and of leaving it, by a clock that all nodes here have."""
        with lockutils.lock(name, lock_file_prefix="nova-", external=True, lock_path=self._lock_path()):
            began = time.monotonic()
            pathlib.Path(note).touch()
            time.sleep(seconds)
            return [began, time.monotonic()]

    def remove_lock_file(self, name):
        lockutils.remove_external_lock_file(name, lock_file_prefix="nova-", lock_path=self._lock_path())

    def _lock_path(self):
        return os.path.join(CONF.instances_path, "locks")


def main():
    host, address, instances_path, shared = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    logging.register_options(CONF)
    logging.setup(CONF, "nova")
    node = Node(host, address, instances_path, pathlib.Path(shared))
    print(json.dumps({"answer": "ready"}), file=answers, flush=True)
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        try:
            answer = {"answer": getattr(node, method)(*arguments)}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
