import type { Configuration } from '../../config/configuration.ts';
import type { Finding, Hint } from '../../domain/finding.ts';
import type { Log } from '../../service/ports.ts';
import type { TimeSource } from '../system/clock.ts';
import type { OpenedStore } from './opened-store.ts';

/** Keeps the records of an authority elsewhere than in its state directory. */
export type Engine = {
  /** The section of the configuration that asks for it. */
  readonly section: readonly string[];
  /** Where the records are, for people. */
  readonly place: string;
  /** How a backup of a state directory is restored there. */
  readonly restoring: (file: string, hint: Hint) => string;
  /** Opens the store for a daemon. Rejects with `EngineError` if that is not possible. */
  readonly open: (
    configuration: Configuration,
    options: EngineOptions,
    resources: AsyncDisposableStack,
  ) => Promise<OpenedStore>;
  /** Examines it for the doctor. Changes nothing. */
  readonly examine: (configuration: Configuration) => Promise<readonly Finding[]>;
};

declare module '../../feature.ts' {
  interface Feature {
    /** Where an authority can keep its records instead of its state directory. */
    readonly engine?: Engine;
  }
}

type EngineOptions = {
  log: Log;
  /** Default: the clocks of this machine. */
  time?: TimeSource;
  /** Ends a start that waits. */
  signal?: AbortSignal;
};
