/** Test files in process that Windows' Node does not run, each with its reason. */
export const notOnWindows: Readonly<Record<string, string>> = {
  'test/features/postgres/{store,daemon,cli,service}/**': 'They start a PostgreSQL server.',
  'test/config/{certificates,defaults,errors,local-file,location,precedence,secrets,show,tls,warnings}.test.ts':
    'Their configurations have POSIX paths.',
  'test/store/sqlite/{open,reserve,state-directory}.test.ts': 'They are about owners and permission bits.',
  'test/daemon/sockets.test.ts': 'It is about owners and permission bits.',
  'test/daemon/slow-stop.test.ts': 'Its client reads from a Unix socket.',
  'test/http/listen.test.ts': 'It is about owners and permission bits.',
  'test/cli/{doctor,doctor-agent,doctor-start}.test.ts':
    "They read permission bits; Wine's icacls prints nothing, so that doctor warns.",
  'test/features/install/folder.test.ts': 'It is about links and permission bits.',
  'test/client/types.test.ts': 'Types are the same on each platform.',
  'test/features/install/completion.test.ts': 'It needs shells.',
  'test/cli/main.test.ts': 'It needs a shell.',
  'test/features/install/{service,unit-reach}.test.ts': 'They need a shell or systemd.',
};

/** Test files without a subject that is different on Windows. They would only make a run longer. */
export const tooSlow: readonly string[] = [
  'test/features/*/{domain,service,sync,upstream,wire}/**',
  'test/features/leases/{*,holder/*,issuer/*}.test.ts',
  'test/features/leases/property/**',
  'test/features/webhooks/*.test.ts',
  'test/features/console/page/**',
  'test/cli/{instance,seller}.test.ts',
  'test/client/guide.test.ts',
  'test/contract/{access,accounts,dialects,hostile,http-gate,openapi,unanswered}.test.ts',
  'test/daemon/{heap,memory}.test.ts',
  'test/http/entry/{broken-requests,unread-answers}.test.ts',
  'test/http/openapi/longest-texts.test.ts',
  'test/http/response-cache/same-responses.test.ts',
  'test/features/bulk/http/import.test.ts',
];
