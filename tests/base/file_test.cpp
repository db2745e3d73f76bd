#include "reef/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "support/resident_pages.h"
#include "support/temporary_folder.h"

namespace reef {
namespace {

using testing::HasSubstr;

struct File : testing::Test {
    [[nodiscard]] std::size_t entries() const {
        return static_cast<std::size_t>(
            std::distance(std::filesystem::directory_iterator(folder.path()), {}));
    }
    [[nodiscard]] static std::string text_of(const std::string& path) {
        const auto contents = read_file(path);
        return contents ? std::string(as_text(contents->view())) : contents.error().message();
    }

    test::TemporaryFolder folder;
};

TEST_F(File, WritesAndReads) {
    const std::string path = folder.file("a");
    for (const std::string& text :
         {std::string("hello"), std::string(), std::string(100000, 'x')}) {
        ASSERT_TRUE(write_file(path, as_bytes(text)));
        EXPECT_EQ(text_of(path), text);
        EXPECT_EQ(entries(), 1u);
    }
}

TEST_F(File, MappedContentsSurviveReplacement) {
    const std::string path = folder.file("a");
    ASSERT_TRUE(write_file(path, as_bytes("old")));
    const auto old = read_file(path);
    ASSERT_TRUE(old);
    ASSERT_TRUE(write_file(path, as_bytes("new!")));
    EXPECT_EQ(as_text(old->view()), "old");
    EXPECT_EQ(text_of(path), "new!");
}

TEST_F(File, WhatWillNotBeReadTakesNoMemory) {
    const std::string path = folder.file("a");
    std::string text(1 << 20, 'x');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * i >> 8U);
    ASSERT_TRUE(write_file(path, as_bytes(text)));
    const auto mapped = read_file(path);
    ASSERT_TRUE(mapped);
    ASSERT_EQ(as_text(mapped->view()), text);
    const std::size_t all = test::pages(mapped->view());
    ASSERT_EQ(test::resident_pages(mapped->view()), all);
    // Pages that others have a part of stay.
    const SharedBytes part = mapped->part(100, text.size() / 2);
    will_not_read(part);
    EXPECT_EQ(test::resident_pages(part.view()), 2U);
    EXPECT_EQ(test::resident_pages(mapped->view()), all - test::pages(part.view()) + 2);
    will_not_read(*mapped);
    EXPECT_EQ(test::resident_pages(mapped->view()), 0U);
    EXPECT_EQ(as_text(mapped->view()), text);
    for (const SharedBytes& less : {mapped->part(5, 0), mapped->part(5, 100), SharedBytes()})
        will_not_read(less);
    EXPECT_EQ(as_text(mapped->view()), text);
}

TEST_F(File, MemoryOfNoFileKeepsItsContents) {
    const std::string text(1 << 20, 'x');
    const SharedBytes copy = SharedBytes::copy_of(as_bytes(text));
    will_not_read(copy);
    EXPECT_EQ(as_text(copy.view()), text);
}

TEST_F(File, ReadsPipes) {
    const std::string path = folder.file("pipe");
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    const std::string text(300000, 'p');
    std::jthread writer([&] { EXPECT_TRUE(write_file(path, as_bytes(text))); });
    EXPECT_EQ(text_of(path), text);
    EXPECT_TRUE(std::filesystem::is_fifo(path));
}

TEST_F(File, DashIsStandardInputAndOutput) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const int input = dup(STDIN_FILENO);
    const int output = dup(STDOUT_FILENO);
    dup2(ends[0], STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    const Status written = write_file("-", as_bytes("through the pipe"));
    dup2(output, STDOUT_FILENO);
    const auto contents = read_file("-");
    dup2(input, STDIN_FILENO);
    close(input);
    close(output);
    EXPECT_TRUE(written);
    ASSERT_TRUE(contents);
    EXPECT_EQ(as_text(contents->view()), "through the pipe");
}

TEST_F(File, ReadErrorsSayWhichFileAndWhy) {
    const auto missing = read_file(folder.file("missing"));
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().cause, Cause::not_found);
    EXPECT_EQ(missing.error().message(),
              folder.file("missing") + ": no such file or folder (check the path)");

    const auto directory = read_file(folder.path().string());
    ASSERT_FALSE(directory);
    EXPECT_EQ(directory.error().cause, Cause::io_failed);
    EXPECT_THAT(directory.error().message(), HasSubstr("is a folder, not a file"));

    ASSERT_TRUE(write_file(folder.file("plain"), as_bytes("x")));
    const auto below = read_file(folder.file("plain") + "/x");
    ASSERT_FALSE(below);
    EXPECT_EQ(below.error().cause, Cause::not_found);
    EXPECT_THAT(below.error().message(), HasSubstr("a part of the path is not a folder"));

    EXPECT_EQ(read_file("").error().cause, Cause::bad_argument);
    EXPECT_EQ(read_file(std::string("a\0b", 3)).error().message(), "a: a path with a zero byte");
}

TEST_F(File, PermissionIsNamed) {
    const std::string path = folder.file("secret");
    ASSERT_TRUE(write_file(path, as_bytes("x")));
    ASSERT_EQ(chmod(path.c_str(), 0), 0);
    // Root may read everything, so it becomes somebody else for a moment.
    constexpr uid_t nobody = 65534;
    const bool root = geteuid() == 0;
    if (root) {
        ASSERT_EQ(seteuid(nobody), 0);
    }
    const auto denied = read_file(path);
    const auto unwritten = write_file(folder.file("secret/../b"), as_bytes("x"));
    if (root) {
        ASSERT_EQ(seteuid(0), 0);
    }
    EXPECT_FALSE(unwritten);
    ASSERT_FALSE(denied);
    EXPECT_EQ(denied.error().cause, Cause::io_failed);
    EXPECT_THAT(denied.error().message(), HasSubstr("permission denied"));
}

TEST_F(File, StreamsMayBeEmptyButNotEndless) {
    const auto nothing = read_file("/dev/null");
    ASSERT_TRUE(nothing);
    EXPECT_TRUE(nothing->empty());
    const auto endless = read_file("/dev/zero");
    ASSERT_FALSE(endless);
    EXPECT_EQ(endless.error().message(),
              "/dev/zero: a stream of more than 268435456 bytes (larger inputs must be regular "
              "files)");
}

TEST_F(File, ModeIsWhatTheUmaskGives) {
    const mode_t before = umask(027);
    const Status written = write_file(folder.file("a"), as_bytes("x"));
    umask(before);
    ASSERT_TRUE(written);
    struct stat status {};
    ASSERT_EQ(stat(folder.file("a").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST_F(File, ModeOfAReplacedFileStays) {
    const std::string path = folder.file("a");
    ASSERT_TRUE(write_file(path, as_bytes("x")));
    ASSERT_EQ(chmod(path.c_str(), 0751), 0);
    ASSERT_TRUE(write_file(path, as_bytes("y")));
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0751u);
}

TEST_F(File, LinksAndDevicesStay) {
    ASSERT_TRUE(write_file(folder.file("real"), as_bytes("old")));
    std::filesystem::create_symlink("real", folder.file("link"));
    ASSERT_TRUE(write_file(folder.file("link"), as_bytes("new")));
    EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
    EXPECT_EQ(text_of(folder.file("real")), "new");

    ASSERT_TRUE(write_file("/dev/null", as_bytes("gone")));
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(File, WriteErrorsLeaveNothingBehind) {
    const auto no_folder = write_file(folder.file("none/x"), as_bytes("x"));
    ASSERT_FALSE(no_folder);
    EXPECT_EQ(no_folder.error().cause, Cause::not_found);
    EXPECT_EQ(no_folder.error().message(), folder.file("none/x") + ": no folder " +
                                               folder.file("none") + " (create the folder first)");
    const auto onto_folder = write_file(folder.path().string(), as_bytes("x"));
    ASSERT_FALSE(onto_folder);
    EXPECT_EQ(onto_folder.error().cause, Cause::io_failed);
    const auto too_long = write_file(folder.file(std::string(300, 'n')), as_bytes("x"));
    ASSERT_FALSE(too_long);
    EXPECT_EQ(too_long.error().cause, Cause::io_failed);
    EXPECT_EQ(entries(), 0u);
}

TEST_F(File, AFailedWriteKeepsTheOldFile) {
    const std::string path = folder.file("a");
    ASSERT_TRUE(write_file(path, as_bytes("old")));
    struct rlimit before {};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small { 1000, before.rlim_max };
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const Status written = write_file(path, as_bytes(std::string(5000, 'x')));
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, handler);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().cause, Cause::io_failed);
    EXPECT_THAT(written.error().message(), HasSubstr("cannot write: "));
    EXPECT_EQ(text_of(path), "old");
    EXPECT_EQ(entries(), 1u);
}

TEST_F(File, FilesThatBelongTogetherStayAsTheyWereWhenOneCannotBeWritten) {
    const std::string good = folder.file("a"), other = folder.file("b");
    ASSERT_TRUE(write_file(good, as_bytes("old")));
    const NamedContents bad[] = {{good, as_bytes("new")}, {folder.file("none/b"), as_bytes("new")}};
    const Status refused = write_files(bad);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("no folder"));
    EXPECT_EQ(text_of(good), "old");
    EXPECT_EQ(entries(), 1u);

    const NamedContents both[] = {{good, as_bytes("new")}, {other, as_bytes("newer")}};
    ASSERT_TRUE(write_files(both));
    EXPECT_EQ(text_of(good), "new");
    EXPECT_EQ(text_of(other), "newer");
    EXPECT_EQ(entries(), 2u);
}

/// A name that is too long is found out when the file is put in its place.
TEST_F(File, FilesInPlaceAreTakenBackWhenAnotherCannotBePutInItsPlace) {
    const std::string old = folder.file("a"), fresh = folder.file("b"), link = folder.file("l");
    ASSERT_TRUE(write_file(old, as_bytes("old")));
    ASSERT_TRUE(write_file(folder.file("real"), as_bytes("old")));
    std::filesystem::create_symlink("real", link);
    const NamedContents files[] = {{old, as_bytes("new")},
                                   {fresh, as_bytes("new")},
                                   {link, as_bytes("new")},
                                   {folder.file(std::string(300, 'n')), as_bytes("new")}};
    const Status refused = write_files(files);
    ASSERT_FALSE(refused);
    EXPECT_EQ(text_of(old), "old");
    EXPECT_FALSE(std::filesystem::exists(fresh));
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_EQ(text_of(folder.file("real")), "old");
    EXPECT_EQ(entries(), 3u);
}

}  // namespace
}  // namespace reef
