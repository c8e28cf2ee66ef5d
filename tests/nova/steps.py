# SPDX-License-Identifier: LGPL-2.1-or-later
"""What two compute nodes do with their instances on one volume. Each method is a step; its name says what must hold.

The steps of a story build on each other, and continue if one fails. Stories run in the order of STORIES.
"""

import itertools
import json
import os
import time
import uuid

import guide
from harness import context, digest, output, run
from nodes import ComputeNode, NodeError, at_once

MIB, GIB = 1 << 20, 1 << 30
IMAGE_SIZE = 64 * MIB
EVACUATION_LIMIT_S = 180
DAY_S = 24 * 3600


def check(condition, what=""):
    if not condition:
        raise AssertionError(what or "it is not so")


def equal(one, other):
    check(one == other, f"{one!r} is not {other!r}")


def fails(kind, function, *arguments):
    try:
        function(*arguments)
    except NodeError as error:
        check(kind in str(error), f"another error: {error}")
    else:
        raise AssertionError(f"no {kind}")


class Story:
    def __init__(self, site, a, b):
        self.site, self.a, self.b = site, a, b

    def begin(self):
        """What the steps need."""

    def add_images(self, *names, **about):
        for name in names:
            self.site.add_image(name, context.workdir / "image.raw", **about)

    def vm(self, image="plain", node=None, **more):
        return {"uuid": str(uuid.uuid4()), "host": (node or self.a).host, "image": image, "root_gb": 1, **more}

    def spawned(self, **more):
        vm = self.vm(**more)
        self.node_of(vm).spawn(vm)
        return vm

    def node_of(self, vm):
        return self.a if vm["host"] == self.a.host else self.b

    def path(self, *names):
        """As Nova on both nodes names it."""
        return str(self.site.instances.joinpath(*names))

    def disk(self, vm, name="disk"):
        return self.path(vm["uuid"], name)

    def names_in(self, node, *names):
        folder = node.path.joinpath(*names)
        return sorted(os.listdir(folder)) if folder.is_dir() else []

    def base(self, image):
        return self.a.cache_name(image)

    def age(self, name, days):
        then = time.time() - days * DAY_S
        os.utime(self.a.path / "_base" / name, (then, then))

    def has(self, node, disk, *commands, image_format="qcow2"):
        """That qemu-io on that node reads the patterns; the disk may be in use."""
        words = [word for command in commands for word in ("-c", command)]
        answer = node.output("qemu-io", "-r", "-U", "-f", image_format, *words, disk)
        check("failed" not in answer and "rror" not in answer, answer)


class SharedStorage(Story):
    """What Nova asks of its instances_path."""

    def nova_knows_each_setting_of_the_guide_and_takes_its_value(self):
        wanted = guide.settings(str(self.site.instances))
        check({"instances_path", "images_type", "disk_cachemodes", "hw_disk_discard"} <= {name for _, name, _ in wanted})
        equal([(section, name, self.a.setting(section, name)) for section, name, _ in wanted], wanted)

    def direct_io_is_supported_so_that_guests_disks_bypass_the_page_cache(self):
        equal([self.a.supports_direct_io(), self.b.disk_cachemode()], [True, "none"])

    def both_nodes_are_told_the_same_size_of_the_storage(self):
        check(self.a.fs_info()["total"] == self.b.fs_info()["total"] > 0)

    def disks_can_be_preallocated(self):
        check(self.a.can_preallocate(self.spawned()))

    def nodes_that_register_at_once_are_both_users_of_the_storage(self):
        at_once((self.a, "register_storage_use"), (self.b, "register_storage_use"))
        equal([self.a.get_storage_users(), self.b.get_storage_users()], [[self.a.host, self.b.host]] * 2)

    def none_of_many_registrations_from_both_nodes_at_once_is_lost(self):
        at_once((self.a, "register_many_users", "left-", 25), (self.b, "register_many_users", "right-", 25))
        equal(len(self.a.get_storage_users()), 52)

    def the_list_of_users_is_whole_json(self):
        check(len(json.loads((self.b.path / "compute_nodes").read_text(encoding="utf-8"))) == 52)

    def a_node_that_has_not_registered_for_a_day_is_no_user(self):
        users = {self.a.host: time.time(), "old-node": time.time() - DAY_S - 1}
        (self.a.path / "compute_nodes").write_text(json.dumps(users), encoding="utf-8")
        equal(self.b.get_storage_users(), [self.a.host])

    def a_test_file_of_one_node_is_seen_by_the_other_at_once(self):
        vm = self.vm()
        for maker, looker in [(self.a, self.b), (self.b, self.a)] * 5:
            name = maker.shared_storage_test_file(vm)
            check(looker.sees_shared_storage_test_file(vm, name))
            maker.remove_shared_storage_test_file(name)

    def a_test_file_that_was_removed_is_seen_no_longer(self):
        vm = self.vm()
        name = self.b.shared_storage_test_file(vm)
        check(self.a.sees_shared_storage_test_file(vm, name))
        self.b.remove_shared_storage_test_file(name)
        check(not self.a.sees_shared_storage_test_file(vm, name))

    def a_name_that_was_looked_for_in_vain_is_seen_once_it_is_made(self):
        vm = self.vm()
        check(not self.a.sees_shared_storage_test_file(vm, "looked-for"))
        (self.b.path / "looked-for").touch()
        check(self.a.sees_shared_storage_test_file(vm, "looked-for"))
        self.a.remove_shared_storage_test_file("looked-for")

    def a_file_made_through_ssh_on_the_other_node_says_that_the_path_is_shared(self):
        vm = self.spawned()
        check(self.a.is_path_shared_with(self.b.address, self.path(vm["uuid"])))

    def that_question_leaves_no_file(self):
        check(not [name for folder in os.listdir(self.a.path) for name in self.names_in(self.a, folder)
                   if name.endswith(".tmp")])

    def a_path_that_is_not_shared_is_told_so(self):
        run("nsenter", "--mount", "--target", self.b.process.pid, "mount", "-t", "tmpfs", "none",
            self.site.shared / "sockets")
        try:
            check(not self.a.is_path_shared_with(self.b.address, str(self.site.shared / "sockets")))
        finally:
            run("nsenter", "--mount", "--target", self.b.process.pid, "umount", self.site.shared / "sockets")

    def a_file_in_the_instance_folder_tells_that_the_instance_is_shared(self):
        vm = self.spawned(node=self.b)
        data = self.a.shared_instance_file(vm)
        check(self.b.sees_shared_instance_file(data))
        self.a.remove_shared_instance_file(data)
        check(not self.b.sees_shared_instance_file(data))


class Locks(Story):
    """Nova's external locks (oslo.concurrency, fcntl) in instances_path/locks."""

    def begin(self):
        self.notes = itertools.count()

    def _note(self):
        return str(self.site.shared / f"note-{next(self.notes)}")

    def a_lock_of_one_node_keeps_the_other_out(self):
        (_, left), (began, _) = sorted(at_once((self.a, "hold_lock", "image", 2, self._note()),
                                               (self.b, "hold_lock", "image", 2, self._note())))
        check(began >= left, f"taken {left - began} s too early")

    def locks_of_other_names_do_not_wait_for_each_other(self):
        (first, left), (second, _) = at_once((self.a, "hold_lock", "one", 3, self._note()),
                                             (self.b, "hold_lock", "two", 3, self._note()))
        check(second < left and first < second + 3)

    def a_number_that_both_nodes_change_under_the_lock_loses_nothing(self):
        (self.a.path / "number").write_text("0", encoding="utf-8")
        at_once((self.a, "count_up", self.path("number"), 40), (self.b, "count_up", self.path("number"), 40))
        equal((self.b.path / "number").read_text(encoding="utf-8"), "80")

    def a_lock_file_that_one_node_removes_is_one_lock_again_for_both(self):
        self.a.remove_lock_file("counter")
        at_once((self.a, "count_up", self.path("number"), 20), (self.b, "count_up", self.path("number"), 20))
        equal((self.a.path / "number").read_text(encoding="utf-8"), "120")

    def the_lock_of_a_nova_that_was_killed_is_free_at_once(self):
        note = self._note()
        self.a.begin("hold_lock", "killed", 600, note)
        while not os.path.exists(note):
            time.sleep(0.05)
        self.a.stop()
        began = time.monotonic()
        self.b.hold_lock("killed", 0, self._note())
        check(time.monotonic() - began < 10)

    def a_nova_that_starts_again_takes_the_same_locks(self):
        self.a.start()
        at_once((self.a, "count_up", self.path("number"), 20), (self.b, "count_up", self.path("number"), 20))
        equal((self.b.path / "number").read_text(encoding="utf-8"), "160")


class ImageCache(Story):
    """The images in _base, which all nodes of a storage have in common."""

    def begin(self):
        self.add_images("slow", slow_s=2)
        self.add_images("endless", slow_s=3600, slow_on=self.a.host)
        self.add_images("second", "third", "fourth", "fifth")
        self.site.add_image("packed", context.workdir / "image.qcow2", "qcow2")
        self.site.add_image("large", context.workdir / "large.qcow2", "qcow2")
        self.site.add_image("liar", context.workdir / "image.qcow2", "raw")
        self.left, self.right = self.vm("slow"), self.vm("slow", self.b)

    def two_nodes_that_start_guests_of_a_new_image_at_once_download_it_once(self):
        equal(at_once((self.a, "spawn", self.left), (self.b, "spawn", self.right)), [None, None])
        equal(len(self.site.downloads("slow")), 1)

    def the_cached_image_has_the_bytes_of_the_original_on_both_nodes(self):
        original = digest(context.workdir / "image.raw")
        equal([digest(node.path / "_base" / self.base("slow")) for node in [self.a, self.b]], [original] * 2)

    def the_disks_of_both_nodes_stand_on_the_one_image(self):
        equal([self.b.backing_file(self.disk(self.left)), self.a.backing_file(self.disk(self.right))],
              [self.path("_base", self.base("slow"))] * 2)

    def the_cache_has_no_half_images(self):
        check(not [name for name in self.names_in(self.b, "_base") if "." in name])

    def a_packed_image_is_unpacked_into_the_cache(self):
        self.b.cache_image("packed")
        equal(digest(self.a.path / "_base" / self.base("packed")), digest(context.workdir / "image.raw"))

    def an_image_that_one_node_has_cached_the_other_does_not_download(self):
        equal([self.a.cache_image("second"), self.b.cache_image("second")], [True, False])
        equal(len(self.site.downloads("second")), 1)

    def the_use_of_an_image_by_one_node_makes_it_young_for_the_other(self):
        self.age(self.base("second"), 3)
        self.spawned(image="second", node=self.b)
        check(time.time() - os.stat(self.a.path / "_base" / self.base("second")).st_mtime < 60)

    def both_nodes_find_the_same_usage_of_the_cache(self):
        used = [self.a.cache_usage(), self.b.cache_usage()]
        check(used[0] == used[1] > MIB, used)

    def an_image_that_glance_does_not_have_leaves_nothing(self):
        fails("ImageNotFound", self.a.cache_image, "unknown")
        check(not [name for name in self.names_in(self.b, "_base") if name.startswith(self.base("unknown"))])

    def an_image_that_is_not_what_glance_says_leaves_nothing(self):
        fails("ImageUnacceptable", self.b.cache_image, "liar")
        check(not [name for name in self.names_in(self.a, "_base") if name.startswith(self.base("liar"))])

    def an_image_larger_than_the_flavors_disk_leaves_no_disk(self):
        vm = self.vm("large")
        fails("FlavorDiskSmallerThanImage", self.a.spawn, vm)
        check("disk" not in self.names_in(self.b, vm["uuid"]))

    def a_young_image_that_nobody_uses_stays(self):
        self.a.cache_image("third")
        self.a.run_image_cache_manager([self.left, self.right])
        check(self.base("third") in self.names_in(self.b, "_base"))

    def an_old_image_that_nobody_uses_is_removed_and_gone_on_the_other_node_at_once(self):
        check((self.b.path / "_base" / self.base("third")).exists())
        self.age(self.base("third"), 3)
        self.a.run_image_cache_manager([self.left, self.right])
        check(not (self.b.path / "_base" / self.base("third")).exists())

    def its_lock_file_is_removed_with_it(self):
        check("nova-" + self.base("third") not in self.names_in(self.b, "locks"))

    def an_old_image_that_only_the_other_node_uses_stays_and_is_young_again(self):
        self.age(self.base("slow"), 3)
        self.b.run_image_cache_manager([self.left])
        check(time.time() - os.stat(self.a.path / "_base" / self.base("slow")).st_mtime < 60)

    def an_image_that_was_removed_is_downloaded_again_for_the_next_guest(self):
        self.spawned(image="third", node=self.b)
        equal(self.site.downloads("third"), [self.a.host, self.b.host])

    def the_cache_managers_of_both_nodes_at_once_remove_the_same_images(self):
        for image in ["fourth", "fifth"]:
            self.a.cache_image(image)
            self.age(self.base(image), 3)
        instances = [self.left, self.right]
        answers = at_once(*[(node, "run_image_cache_manager", instances) for node in [self.a, self.b]])
        # Nova asks for a file's age before it has the lock: the other node may have removed it. The pass ends then.
        check(all(answer is None or "FileNotFoundError" in str(answer) for answer in answers), answers)
        for node in [self.a, self.b]:
            node.run_image_cache_manager(instances)
        check(not {self.base("fourth"), self.base("fifth")} & set(self.names_in(self.a, "_base")))

    def a_guest_that_starts_while_the_other_node_cleans_up_keeps_its_image(self):
        for _ in range(3):
            vm = self.vm("fourth", self.b)
            at_once((self.b, "spawn", vm), (self.a, "run_image_cache_manager", [self.left, self.right], 3600))
            check((self.a.path / "_base" / self.base("fourth")).exists())
            self.b.guest_io(vm, "read 0 1M")
            self.b.destroy(vm)

    def swap_and_ephemeral_disks_get_their_file_systems(self):
        self.furnished = self.spawned(swap_mb=64, ephemeral_gb=1)
        base = self.b.path / "_base"
        kinds = [output("blkid", "-p", "-o", "value", "-s", "TYPE", path).strip()
                 for path in [base / "swap_64", *base.glob("ephemeral_1_*")]]
        equal(kinds, ["swap", "ext4"])

    def their_templates_stay_while_a_node_uses_them(self):
        for name in self._blank_templates():
            self.age(name, 3)
        self.b.run_image_cache_manager([self.left, self.right, self.furnished])
        equal(len(self._blank_templates()), 2)

    def their_templates_go_when_no_node_uses_them(self):
        self.a.destroy(self.furnished)
        for name in self._blank_templates():
            self.age(name, 3)
        self.b.run_image_cache_manager([self.left, self.right])
        equal(self._blank_templates(), [])

    def a_download_that_died_with_its_nova_is_made_again_by_the_other_node(self):
        self.a.begin("spawn", self.vm("endless"))
        while not self.site.downloads("endless"):
            time.sleep(0.05)
        time.sleep(1)  # a part of it is there
        self.a.stop()
        vm = self.spawned(image="endless", node=self.b)
        self.b.guest_io(vm, "read 0 1M")
        equal(self.site.downloads("endless"), [self.a.host, self.b.host])

    def what_it_left_is_no_obstacle_to_the_nova_that_starts_again(self):
        self.a.start()
        vm = self.spawned(image="endless")
        self.a.guest_io(vm, "read 0 1M")
        equal(len(self.site.downloads("endless")), 2)

    def _blank_templates(self):
        return [name for name in self.names_in(self.a, "_base") if name.startswith(("swap_", "ephemeral_"))]


class Disks(Story):
    """nova.virt.libvirt.imagebackend and what it calls, one disk at a time."""

    def begin(self):
        self.overlay, self.flat = self.vm(), self.vm(images_type="raw")
        self.a.image_cache_disk(self.overlay, "disk", "plain", GIB)
        self.a.image_cache_disk(self.flat, "disk", "plain", GIB)

    def an_overlay_made_on_one_node_has_its_size_and_base_on_the_other(self):
        equal([self.b.disk_size(self.disk(self.overlay)), self.b.backing_file(self.disk(self.overlay))],
              [GIB, self.path("_base", self.base("plain"))])

    def an_overlay_uses_little_space(self):
        check(self._used(self.disk(self.overlay)) < 4 * MIB)

    def a_flat_disk_begins_with_the_image_and_has_the_flavors_size(self):
        self.b.output("cmp", "-n", 1024, self.disk(self.flat), self.path("_base", self.base("plain")))
        equal(self.b.disk_size(self.disk(self.flat)), GIB)

    def the_file_system_in_a_flat_disk_was_made_as_large(self):
        told = self.b.output("dumpe2fs", "-h", self.disk(self.flat))
        fields = dict(line.split(":", 1) for line in told.splitlines() if ":" in line)
        equal(int(fields["Block count"]) * int(fields["Block size"]), GIB)

    def it_is_sound(self):
        self.b.output("e2fsck", "-f", "-n", self.disk(self.flat))

    def a_flat_disk_is_sparse_beyond_the_image(self):
        check(self._used(self.disk(self.flat)) < 2 * IMAGE_SIZE, self._used(self.disk(self.flat)))

    def _used(self, path):
        return int(self.b.output("du", "--block-size=1", path).split()[0])

    def the_format_of_a_disk_is_kept_in_disk_info_for_the_other_node(self):
        equal(self.b.driver_format(self.flat), "raw")
        equal(json.loads((self.b.path / self.flat["uuid"] / "disk.info").read_text(encoding="utf-8")),
              {self.disk(self.flat): "raw"})

    def a_guest_that_writes_a_header_into_its_raw_disk_does_not_change_its_format(self):
        self.a.output("qemu-img", "create", "-q", "-f", "qcow2", "-o", "preallocation=off", self.path("header"), "1G")
        self.a.output("dd", f"if={self.path('header')}", f"of={self.disk(self.flat)}", "conv=notrunc", "status=none")
        equal([self.b.driver_format(self.flat), self.a.driver_format(self.flat)], ["raw", "raw"])

    def an_overlay_grown_on_one_node_is_as_large_on_the_other(self):
        self.a.extend(self.disk(self.overlay), "qcow2", 3 * GIB)
        equal(self.b.disk_size(self.disk(self.overlay)), 3 * GIB)

    def a_disk_does_not_shrink(self):
        self.b.extend(self.disk(self.overlay), "qcow2", GIB)
        equal(self.a.disk_size(self.disk(self.overlay)), 3 * GIB)

    def an_extract_of_an_overlay_has_its_bytes_and_no_base(self):
        self.b.output("qemu-io", "-f", "qcow2", "-c", "write -P 7 1M 1M", "-c", "write -P 8 2500M 1M",
                      self.disk(self.overlay))
        self.a.snapshot_extract(self.overlay, self.path("extract"), "raw")
        self.has(self.b, self.path("extract"), "read -P 7 1M 1M", "read -P 8 2500M 1M", image_format="raw")
        self.b.output("qemu-img", "compare", "-f", "qcow2", "-F", "raw", self.disk(self.overlay), self.path("extract"))

    def an_image_converted_on_one_node_and_back_on_the_other_is_the_same(self):
        self.a.convert_image(self.path("extract"), self.path("converted"), "raw", "qcow2")
        self.b.convert_image(self.path("converted"), self.path("again"), "qcow2", "raw", True)
        self.a.output("qemu-img", "compare", "-f", "raw", "-F", "raw", self.path("extract"), self.path("again"))

    def a_raw_disk_that_becomes_qcow2_does_so_under_its_name(self):
        self.b.raw_to_qcow2(self.path("again"))
        self.a.output("qemu-img", "compare", "-f", "qcow2", "-F", "raw", self.path("again"), self.path("extract"))
        check("again_qcow" not in self.names_in(self.a))

    def a_copy_keeps_holes(self):
        self.a.copy_image(self.path("extract"), self.path("copy"))
        check(self._used(self.path("copy")) <= self._used(self.path("extract")) + MIB)

    def a_damaged_base_is_refused(self):
        self.a.create_image(self.path("foreign"), "qcow2", GIB, self.path("_base", self.base("plain")))
        fails("InvalidDiskInfo", self.b.create_image, self.path("on-foreign"), "qcow2", GIB, self.path("foreign"))
        check("on-foreign" not in self.names_in(self.a))

    def an_owner_given_on_one_node_is_seen_on_the_other(self):
        self.a.chown(self.disk(self.overlay), 65534, 65534)
        equal(self.b.output("stat", "-c", "%u %g", self.disk(self.overlay)).strip(), "65534 65534")

    def a_whole_instance_folder_gets_its_owner(self):
        self.b.chown(self.path(self.overlay["uuid"]), 107, 107, True)
        owners = {os.stat(self.a.path / self.overlay["uuid"] / name).st_uid
                  for name in [".", *self.names_in(self.a, self.overlay["uuid"])]}
        equal(owners, {107})

    def a_file_written_on_one_node_has_its_bytes_and_mode_on_the_other(self):
        path = self.path(self.overlay["uuid"], "libvirt.xml")
        for content in ["<domain/>", "<domain type='qemu'/>"]:
            self.a.write_file(path, content)
            self.a.chmod(path, 0o640)
            equal(self.b.output("stat", "-c", "%a", path) + self.b.output("cat", path), "640\n" + content)

    def a_folder_moved_into_another_one_is_the_same_on_the_other_node(self):
        swtpm = self.a.path / "swtpm" / self.overlay["uuid"] / "tpm2"
        swtpm.mkdir(parents=True)
        (swtpm / "permall").write_bytes(b"t" * 7000)
        number = os.stat(swtpm).st_ino
        self.a.move_tree(self.path("swtpm", self.overlay["uuid"]), self.path(self.overlay["uuid"], "swtpm"))
        equal(os.stat(self.b.path / self.overlay["uuid"] / "swtpm" / "tpm2").st_ino, number)
        equal((self.b.path / self.overlay["uuid"] / "swtpm" / "tpm2" / "permall").read_bytes(), b"t" * 7000)
        equal(self.names_in(self.b, "swtpm"), [])

    def a_touch_on_one_node_is_seen_on_the_other(self):
        path = self.a.path / self.overlay["uuid"] / "disk"
        os.utime(path, (1, 1))
        self.b.touch(self.disk(self.overlay))
        self.b.output("stat", self.disk(self.overlay))
        time.sleep(1.1)  # -o attr_timeout
        check(time.time() - os.stat(path).st_mtime < 60)


class Guests(Story):
    """Guests start, stop and are deleted."""

    def begin(self):
        self.first = self.spawned()

    def a_guests_writes_are_on_its_disk_for_the_other_node(self):
        self.a.guest_io(self.first, "write -P 1 1M 1M")
        self.a.guest_io(self.first, "flush")
        self.has(self.b, self.disk(self.first), "read -P 1 1M 1M")

    def a_guest_that_runs_is_not_started_on_the_other_node(self):
        fails("lock", self.b.spawn, dict(self.first, host=self.b.host))

    def the_refused_start_has_left_the_guest_and_its_disk_alone(self):
        check(self.a.is_running(self.first))
        self.a.guest_io(self.first, "read -P 1 1M 1M")

    def the_other_node_can_look_at_a_disk_that_is_in_use(self):
        equal(self.b.disk_size(self.disk(self.first)), GIB)

    def the_other_node_cannot_change_a_disk_that_is_in_use(self):
        fails("lock", self.b.extend, self.disk(self.first), "qcow2", 2 * GIB)

    def what_a_guest_prints_is_appended_to_its_console_log(self):
        self.a.guest_prints(self.first, "first boot\n")
        equal(self.b.console_output(self.first), "first boot\n")

    def a_guest_that_was_stopped_starts_on_the_other_node(self):
        self.a.power_off(self.first)
        self.first["host"] = self.b.host
        self.b.spawn(self.first)
        self.b.guest_io(self.first, "read -P 1 1M 1M")

    def the_console_log_goes_on_there(self):
        self.b.guest_prints(self.first, "second boot\n")
        equal(self.a.console_output(self.first), "first boot\nsecond boot\n")

    def the_last_bytes_of_a_log_are_read(self):
        equal(self.a.last_bytes(self.disk(self.first, "console.log"), 5), "boot\n")

    def the_space_of_its_disk_is_told_alike_on_both_nodes(self):
        used = self.b.disk_info(self.first)[0]["disk_size"]
        check(abs(used - 512 * os.stat(self.a.path / self.first["uuid"] / "disk").st_blocks) <= 256 << 10)

    def a_guest_that_is_deleted_is_gone_on_both_nodes(self):
        self.b.destroy(self.first)
        equal([self._gone(self.a, self.first), self._gone(self.b, self.first)], [True, True])

    def files_deleted_by_both_nodes_at_once_are_gone(self):
        vm = self.spawned()
        self.a.power_off(vm)
        at_once((self.a, "delete_instance_files", vm), (self.b, "delete_instance_files", vm))
        check(self._gone(self.b, vm))

    def a_deletion_that_was_interrupted_is_finished_by_the_other_node(self):
        vm = self.spawned()
        self.a.power_off(vm)
        os.rename(self.a.path / vm["uuid"], self.a.path / (vm["uuid"] + "_del"))
        check(self.b.delete_instance_files(vm) and self._gone(self.a, vm))

    def files_are_deleted_in_the_middle_of_a_resize(self):
        vm = self.spawned()
        self.a.power_off(vm)
        os.rename(self.a.path / vm["uuid"], self.a.path / (vm["uuid"] + "_resize"))
        check(self.b.delete_instance_files(vm) and self._gone(self.a, vm))

    def files_are_deleted_while_the_other_node_has_one_open(self):
        vm = self.spawned()
        with open(self.b.path / vm["uuid"] / "disk", "rb") as disk:
            self.a.destroy(vm)
            check(disk.read(4) == b"QFI\xfb" and self._gone(self.b, vm))

    def many_guests_start_on_both_nodes_at_once(self):
        self.many = [(node, self.vm(node=node)) for _ in range(3) for node in [self.a, self.b]]
        for one, other in zip(self.many[::2], self.many[1::2]):
            equal(at_once((one[0], "spawn", one[1]), (other[0], "spawn", other[1])), [None, None])

    def many_guests_are_deleted_on_both_nodes_at_once(self):
        for one, other in zip(self.many[::2], self.many[1::2]):
            equal(at_once((one[0], "destroy", one[1]), (other[0], "destroy", other[1])), [None, None])
        check(all(self._gone(self.a, vm) for _, vm in self.many))

    def _gone(self, node, vm):
        return not [name for name in os.listdir(node.path) if name.startswith(vm["uuid"])]


class Resize(Story):
    """A cold migration to the other node with a larger disk: confirmed, reverted, refused."""

    def begin(self):
        self.guest = self.spawned(ephemeral_gb=1)
        self.a.guest_io(self.guest, "write -P 3 900M 1M")

    def the_disk_does_not_get_smaller(self):
        fails("Unable to resize disk down", self.a.migrate_disk_and_power_off, self.guest, self.b.address, 0)
        check(self.a.is_running(self.guest) and self._folders() == [""])

    def _folders(self):
        return [name.removeprefix(self.guest["uuid"]) for name in sorted(os.listdir(self.b.path))
                if name.startswith(self.guest["uuid"])]

    def the_source_renames_the_folder_and_copies_the_disks(self):
        self.info = self.a.migrate_disk_and_power_off(self.guest, self.b.address, 2)
        equal(self._folders(), ["", "_resize"])
        equal(self.names_in(self.b, self.guest["uuid"]), ["disk", "disk.info", "disk.local"])

    def the_copy_is_the_same_on_the_destination(self):
        for name in ["disk", "disk.info", "disk.local"]:
            self.b.output("cmp", self.disk(self.guest, name), self.path(self.guest["uuid"] + "_resize", name))

    def the_destination_starts_the_guest_with_its_bytes(self):
        self.guest.update(host=self.b.host, root_gb=2)
        self.b.finish_migration(self.guest, self.info, self.a.host)
        self.b.guest_io(self.guest, "read -P 3 900M 1M")

    def its_disk_is_larger(self):
        equal(self.a.disk_size(self.disk(self.guest)), 2 * GIB)

    def the_confirmed_resize_leaves_the_new_folder_alone(self):
        self.a.confirm_migration(self.guest)
        equal(self._folders(), [""])
        check(self.b.is_running(self.guest))

    def a_resize_back_is_reverted_by_the_destination_without_touching_disks(self):
        self.b.guest_io(self.guest, "write -P 4 1900M 1M")
        self.info = self.b.migrate_disk_and_power_off(self.guest, self.a.address, 3)
        moved = dict(self.guest, host=self.a.host, root_gb=3)
        self.a.finish_migration(moved, self.info, self.b.host)
        self.a.guest_io(moved, "write -P 5 1900M 1M")
        self.a.destroy(moved, False)
        equal(self._folders(), ["", "_resize"])

    def the_source_renames_its_folder_back_and_starts_the_guest(self):
        self.b.finish_revert_migration(self.guest)
        equal(self._folders(), [""])
        check(self.b.is_running(self.guest))

    def the_reverted_disk_has_the_bytes_and_the_size_of_before(self):
        self.b.guest_io(self.guest, "read -P 4 1900M 1M")
        equal(self.a.disk_size(self.disk(self.guest)), 2 * GIB)

    def a_migration_to_a_node_that_does_not_answer_leaves_the_guest_alone(self):
        fails("not able to execute ssh command", self.b.migrate_disk_and_power_off, self.guest, "198.51.100.1", 3)
        check(self.b.is_running(self.guest) and self._folders() == [""])

    def a_migration_whose_copy_fails_renames_the_folder_back(self):
        self.site.copies_fail.touch()
        fails("ProcessExecutionError", self.b.migrate_disk_and_power_off, self.guest, self.a.address, 3)
        self.site.copies_fail.unlink()
        equal(self._folders(), [""])

    def the_guest_starts_again_after_it(self):
        self.b.power_on(self.guest)
        self.b.guest_io(self.guest, "read -P 4 1900M 1M")


class LiveMigration(Story):
    """A guest that runs moves to the other node, with its disk where it is."""

    def begin(self):
        self.guest = self.spawned()
        self.a.guest_io(self.guest, "write -P 5 5M 1M")
        self.before = self.names_in(self.b, self.guest["uuid"])

    def the_source_sees_the_destinations_test_file_and_so_that_storage_is_shared(self):
        self.data = self.b.check_can_live_migrate_destination(self.guest)
        self.data = self.a.check_can_live_migrate_source(self.guest, self.data)
        told = self.data["nova_object.data"]
        equal([told["is_shared_instance_path"], told["block_migration"]], [True, False])

    def the_test_file_is_gone_afterwards(self):
        self.b.cleanup_live_migration_destination_check(self.data)
        check(self.data["nova_object.data"]["filename"] not in self.names_in(self.a))

    def the_preparation_leaves_the_folder_alone(self):
        self.data = self.b.pre_live_migration(self.guest, self.data)
        equal(self.names_in(self.a, self.guest["uuid"]), self.before)

    def the_guest_runs_on_the_destination_and_reads_what_it_wrote(self):
        self.b.receive_guest(self.a.domain_xml(self.guest))
        self.a.live_migrate(self.guest, self.b.address, self.data)
        self.b.guest_io(self.guest, "read -P 5 5M 1M")

    def it_runs_no_longer_on_the_source(self):
        check(not self.a.is_running(self.guest))

    def it_writes_there(self):
        self.b.guest_io(self.guest, "write -P 6 7M 1M")
        self.b.guest_io(self.guest, "flush")
        self.has(self.a, self.disk(self.guest), "read -P 6 7M 1M")

    def the_sources_clean_up_leaves_the_disk(self):
        self.a.post_live_migration(self.guest, self.data)
        self.guest["host"] = self.b.host
        self.b.post_live_migration_at_destination(self.guest)
        equal(self.names_in(self.a, self.guest["uuid"]), self.before)

    def the_destination_holds_the_disks_lock(self):
        fails("lock", self.a.spawn, dict(self.guest, host=self.a.host))

    def it_moves_to_and_fro_while_it_writes_and_keeps_all(self):
        source, target = self.b, self.a
        for number in range(4):
            source.guest_io(self.guest, f"write -P {10 + number} {20 + number}M 1M")
            target.receive_guest(source.domain_xml(self.guest))
            source.live_migrate(self.guest, target.address, self.data)
            source, target = target, source
        for number in range(4):
            source.guest_io(self.guest, f"read -P {10 + number} {20 + number}M 1M")

    def a_migration_that_is_rolled_back_leaves_the_shared_folder(self):
        self.a.rollback_live_migration_at_destination(dict(self.guest, host=self.b.host), self.data)
        equal(self.names_in(self.b, self.guest["uuid"]), self.before)

    def the_disk_is_sound(self):
        self.b.power_off(self.guest)
        self.a.output("qemu-img", "check", "-f", "qcow2", self.disk(self.guest))


class Rescue(Story):
    def begin(self):
        self.guest = self.spawned()
        self.a.guest_io(self.guest, "write -P 9 9M 1M")
        self.before = self.names_in(self.b, self.guest["uuid"])

    def a_rescued_guest_boots_from_a_disk_of_its_own(self):
        self.a.rescue(self.guest)
        new = set(self.names_in(self.b, self.guest["uuid"])) - set(self.before)
        equal(new, {"disk.rescue", "unrescue.xml"})

    def it_has_its_disk_as_second(self):
        self.a.guest_io(self.guest, "read -P 9 9M 1M", "vdb")

    def it_can_mend_it(self):
        self.a.guest_io(self.guest, "write -P 11 11M 1M", "vdb")
        self.a.guest_io(self.guest, "write -P 12 11M 1M", "vda")

    def both_disks_are_locked_against_the_other_node(self):
        for name in ["disk", "disk.rescue"]:
            fails("lock", self.b.extend, self.disk(self.guest, name), "qcow2", 2 * GIB)

    def the_guest_boots_from_its_own_disk_again(self):
        self.a.unrescue(self.guest)
        self.a.guest_io(self.guest, "read -P 11 11M 1M")

    def what_the_rescue_made_is_gone_on_the_other_node(self):
        equal(self.names_in(self.b, self.guest["uuid"]), self.before)


class Snapshots(Story):
    def begin(self):
        self.guest = self.spawned()
        self.a.guest_io(self.guest, "write -P 13 13M 1M")

    def a_snapshot_of_a_guest_that_runs_has_what_it_wrote(self):
        self.a.snapshot(self.guest, "live")
        self.has(self.a, self.site.glance / "live", "read -P 13 13M 1M")

    def it_has_the_rest_of_the_image(self):
        self.a.output("qemu-img", "compare", "-f", "qcow2", "-F", "qcow2", self.site.glance / "live",
                      self.disk(self.guest), "-U")

    def no_half_snapshot_is_left(self):
        equal(self.names_in(self.b, "snapshots"), [])

    def the_guest_writes_on_and_the_snapshot_stays_as_it_was(self):
        self.a.guest_io(self.guest, "write -P 14 13M 1M")
        self.has(self.a, self.site.glance / "live", "read -P 13 13M 1M")
        self.a.guest_io(self.guest, "read -P 14 13M 1M")

    def a_snapshot_of_a_stopped_guest_has_what_it_wrote(self):
        self.a.power_off(self.guest)
        self.a.snapshot(self.guest, "cold")
        self.has(self.a, self.site.glance / "cold", "read -P 14 13M 1M")

    def the_other_node_starts_a_guest_from_the_snapshot(self):
        vm = self.spawned(image="cold", node=self.b)
        self.b.guest_io(vm, "read -P 14 13M 1M")

    def the_stopped_guest_starts_again(self):
        self.a.power_on(self.guest)
        self.a.guest_io(self.guest, "read -P 14 13M 1M")


class Evacuation(Story):
    """Node A dies with all that is on it, and B continues with its guests."""

    def begin(self):
        self.guest = self.spawned()
        self.a.guest_io(self.guest, "write -P 21 21M 1M")
        self.a.guest_io(self.guest, "flush")
        self.neighbour = self.spawned(node=self.b)
        note = self.site.shared / "note-evacuation"
        self.a.begin("hold_lock", "dead", 3600, str(note))
        while not note.exists():
            time.sleep(0.05)
        self.a.crash()
        self.died = time.monotonic()
        self.here = dict(self.guest, host=self.b.host)

    def the_guest_of_the_other_node_goes_on_meanwhile(self):
        began = time.monotonic()
        self.b.guest_io(self.neighbour, "write -P 22 22M 1M")
        self.b.guest_io(self.neighbour, "read -P 22 22M 1M")
        check(time.monotonic() - began < 20)

    def the_dead_nodes_instance_is_on_disk_for_the_other(self):
        check(self.b.instance_on_disk(self.here))

    def its_image_lock_is_free_within_three_minutes_and_it_starts_on_the_other_node(self):
        while True:
            try:
                self.b.spawn(self.here)
                break
            except NodeError as error:
                check("lock" in str(error), error)
                check(time.monotonic() - self.died < EVACUATION_LIMIT_S, error)
        check(time.monotonic() - self.died < EVACUATION_LIMIT_S)

    def it_has_all_that_it_had_flushed(self):
        self.b.guest_io(self.here, "read -P 21 21M 1M")

    def its_disk_was_not_made_anew(self):
        equal(self.b.disk_size(self.disk(self.here)), GIB)
        check(self.b.host not in self.site.downloads("plain"))

    def a_nova_lock_of_the_dead_node_is_free(self):
        began = time.monotonic()
        self.b.hold_lock("dead", 0, str(self.site.shared / "note-free"))
        check(time.monotonic() - began < EVACUATION_LIMIT_S)

    def the_cache_manager_of_the_other_node_runs(self):
        self.b.run_image_cache_manager([self.here, self.neighbour])
        check((self.b.path / "_base" / self.b.cache_name("plain")).exists())

    def the_dead_node_comes_back_and_sees_its_instances(self):
        self.a = self.site.a = ComputeNode(self.site, self.a.host, self.a.address, elsewhere=True)
        check((self.a.path / self.here["uuid"] / "disk").exists())

    def it_removes_nothing_of_what_was_evacuated(self):
        self.a.destroy(self.guest, False)
        check((self.b.path / self.here["uuid"] / "disk").exists())
        self.b.guest_io(self.here, "read -P 21 21M 1M")

    def it_cannot_start_the_guest_beside_the_other(self):
        fails("lock", self.a.spawn, self.guest)

    def both_nodes_take_locks_and_register_as_before(self):
        (self.b.path / "number").write_text("0", encoding="utf-8")
        at_once((self.a, "count_up", self.path("number"), 20), (self.b, "count_up", self.path("number"), 20))
        equal((self.b.path / "number").read_text(encoding="utf-8"), "40")
        at_once((self.a, "register_storage_use"), (self.b, "register_storage_use"))
        check({self.a.host, self.b.host} <= set(self.a.get_storage_users()))

    def the_guest_moves_back_alive(self):
        data = self.a.check_can_live_migrate_destination(self.here)
        data = self.b.check_can_live_migrate_source(self.here, data)
        data = self.a.pre_live_migration(self.here, data)
        self.a.receive_guest(self.b.domain_xml(self.here))
        self.b.live_migrate(self.here, self.a.address, data)
        self.a.guest_io(self.here, "read -P 21 21M 1M")


STORIES = [SharedStorage, Locks, ImageCache, Disks, Guests, Resize, LiveMigration, Rescue, Snapshots, Evacuation]


def make_images():
    """An ext4 with some files, raw and as qcow2; and one that is larger than the flavors' disks."""
    folder = context.workdir / "files"
    folder.mkdir()
    (folder / "file").write_bytes(os.urandom(3 * MIB))
    raw = context.workdir / "image.raw"
    with open(raw, "wb") as image:
        image.truncate(IMAGE_SIZE)
    run("mkfs.ext4", "-q", "-F", "-d", folder, raw)
    run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, context.workdir / "image.qcow2")
    run("qemu-img", "create", "-q", "-f", "qcow2", context.workdir / "large.qcow2", "2G")


def steps_of(story):
    """The names of its methods but for helpers, as they stand."""
    return [name for name in vars(story) if not name.startswith("_") and name != "begin"]
