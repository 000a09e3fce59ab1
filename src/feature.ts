import type { Entry, Group, ReadLicensePart, HelpSection, HelpLine } from './cli/command.ts';
import type { NewEvent } from './domain/event.ts';
import type { LoadLongReads } from './service/long-read.ts';
import type { Context } from './service/ports.ts';
import type {
  AuthorityTransaction,
  Awaitable,
  ListsOfFeatures,
  Reader,
  Transaction,
} from './service/tables.ts';
import type { Checks } from './wire/check.ts';

/**
 * What one folder of `features/` adds to the core. A feature is listed in `features.ts`, its section of the configuration
 * in `config/feature-sections.ts`, and its setting of `listen.public` in `config/public-settings.ts`. Without its folder
 * and its lines there, the rest of Latchkey works the same. A declaration is loaded at every start. It loads the rest of the feature at the first use.
 *
 * The other fields are declared beside the code that asks for them, because their types lead back to the list: `routes`
 * (http/routes/all.ts), `useCases` (service/run.ts), `timedEvents` (service/timed-events.ts), `tables` (store/tables.ts),
 * `atLatchkey` (sync/sync.ts), `engine` (daemon/store/engine.ts), `roles` (daemon/role/role.ts), `process`
 * (daemon/compose.ts) and `examine` (daemon/doctor/examination.ts).
 */
export interface Feature {
  /** The name of the folder. */
  readonly name: string;
  /** Other features that its files import: it cannot be kept without them. */
  readonly needs?: readonly string[];
  /** Tables of the feature that grow. Their lists are read in another thread. */
  readonly lists?: readonly (keyof ListsOfFeatures)[];
  /** Called in the transaction in which a license key of an agent gets another spelling. */
  readonly onKeyChange?: (transaction: Transaction, from: string, to: string) => void;
  /** Called in the transaction in which the store of an agent turns out to be a copy, or is restored. */
  readonly onCopy?: (transaction: Transaction) => void;
  readonly longReads?: LoadLongReads;
  /** Keeps the events of use cases for other systems. */
  readonly events?: {
    /** Whether anybody gets events. */
    isWanted(reader: Reader): boolean;
    /** Stores the events of a use case, in its transaction. */
    store(
      transaction: AuthorityTransaction,
      events: readonly NewEvent[],
      context: Pick<Context, 'now' | 'random'>,
    ): Awaitable<void>;
  };
  /** What can be wrong with it. `status`, `doctor` and the console list it after the checks of the core. */
  readonly findings?: Checks;
  /** Words after `latchkey`. */
  readonly commands?: readonly Entry[];
  /** Commands that it adds to groups of the core, by the name of the group. */
  readonly subcommands?: Readonly<Record<string, () => Promise<Pick<Group, 'commands'>>>>;
  /** What it adds to `latchkey license show`. */
  readonly licensePart?: () => Promise<ReadLicensePart>;
  /** Its lines in `latchkey --help`. */
  readonly help?: Partial<Readonly<Record<HelpSection, readonly HelpLine[]>>>;
  /** Lines that stand in the place of lines of the core, by the commands of those. */
  readonly replacedHelp?: Readonly<Record<string, HelpLine>>;
  /** The command that starts the daemon of a state directory; null if `latchkey serve` does. */
  readonly startCommand?: (stateDir: string) => Promise<string | null>;
}
