/** How bad an upstream the sandbox is made on purpose. */
export interface SandboxOptions {
  /** 0: a free one. */
  readonly port: number;
  readonly latencyMs: number;
  /** Share of requests, 0 to 1. */
  readonly errorRate: number;
  /** Share of requests, 0 to 1. */
  readonly lostReplies: number;
  readonly offlineAfterMs: number | null;
}

/** The programs of the daemon's floor; each gives the exit code. */
export interface Programs {
  readonly '../daemon/sandbox.ts': {
    readonly runSandbox: (options: SandboxOptions) => Promise<number>;
  };
  readonly '../daemon/demo.ts': {
    readonly runDemo: () => Promise<number>;
  };
}

/** Loads one of the daemon's programs: everything else works without any of it. */
export async function loadProgram<Path extends keyof Programs>(path: Path): Promise<Programs[Path]> {
  return (await import(path)) as Programs[Path];
}
