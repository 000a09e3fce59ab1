/** Test files in process that Windows' Node does not run. Under Wine their tests fail for the reason above them. */
export const notOnWindows: readonly string[] = [
  // They need PostgreSQL.
  'test/store/postgres/**',
  'test/daemon/database*.test.ts',
  'test/cli/{database-commands,doctor-database}.test.ts',
  'test/service/engine.test.ts',
  // Their configurations have POSIX paths.
  'test/config/{certificates,defaults,errors,local-file,location,precedence,secrets,show,tls,warnings}.test.ts',
  'test/domain/header-names.test.ts',
  // They are about owners, groups and permission bits.
  'test/store/sqlite/{open,reserve,state-directory}.test.ts',
  'test/daemon/sockets.test.ts',
  'test/http/listen.test.ts',
  // They need a shell or systemd.
  'test/cli/{completion,main,service,unit-reach}.test.ts',
];
