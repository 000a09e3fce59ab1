import type { CommandArea, CommandLine, Entry, Group, ReadLicensePart } from './cli/command.ts';
import type { Configuration, FeatureSection } from './config/configuration.ts';
import type { Finding } from './config/finding.ts';
import type { FeatureProcess, ProcessParts } from './daemon/feature-process.ts';
import type { BuildRole } from './daemon/role/role.ts';
import type { RoleName } from './domain/role.ts';
import type { Route } from './http/route.ts';
import type { Locks } from './service/locks.ts';
import type { LoadLongReads } from './service/long-read.ts';
import type { EventKeeper } from './service/events.ts';
import type { FeatureUseCases } from './service/audited.ts';
import type { ListsOfFeatures, Transaction } from './service/tables.ts';
import type { FeatureTables } from './store/tables.ts';
import type { Checks } from './wire/check.ts';
import type { CommandOf, CommandResult, UseCaseName, Writer } from './service/writer.ts';

/**
 * What one folder of `features/` adds to the core. A feature is listed in `features.ts`; without its folder and its
 * line there, the rest of Latchkey works the same. What is here is loaded at every start, and loads the rest when it is
 * used.
 */
export type Feature = {
  /** The name of the folder. */
  readonly name: string;
  /** Other features that its files import: it cannot be kept without them. */
  readonly needs?: readonly string[];
  /** Its routes, which follow those of the core. */
  readonly routes?: () => Promise<readonly Route[]>;
  /** Roles of a process that it adds, and how to build one. */
  readonly roles?: { readonly [Name in RoleName]?: () => Promise<BuildRole> };
  /** Its use cases that write, and what each locks on a database that several processes write to. */
  readonly useCases?: {
    readonly load: () => Promise<FeatureUseCases>;
    readonly locks: { readonly [Name in UseCaseName]?: (command: CommandOf<Name>) => Locks };
    /** Those that run on a local store only, and lock nothing. */
    readonly local?: readonly UseCaseName[];
    /** Maintenance that one node does for all nodes: the result for those that try at the same time. */
    readonly byOneNode?: { readonly [Name in UseCaseName]?: CommandResult<Name> };
    /** Those that run even if the disk is full. */
    readonly essential?: readonly UseCaseName[];
  };
  /** Its section of the configuration. */
  readonly settings?: () => Promise<FeatureSection>;
  readonly tables?: () => Promise<FeatureTables>;
  /** Those of its tables whose lists are read in another thread, because they grow. */
  readonly lists?: readonly (keyof ListsOfFeatures)[];
  /** Called in the transaction in which a license key of an agent gets another spelling. */
  readonly onKeyChange?: (transaction: Transaction, from: string, to: string) => void;
  /** Called in the transaction in which the store of an agent turns out to be a copy, or is restored. */
  readonly onCopy?: (transaction: Transaction) => void;
  readonly longReads?: LoadLongReads;
  readonly events?: EventKeeper;
  /** Records the events that only the time causes. Called once a minute while somebody gets events. */
  readonly timedEvents?: (writer: Writer) => Promise<unknown>;
  /** What it has in a process of any role. */
  readonly process?: (parts: ProcessParts) => Promise<FeatureProcess>;
  /** What a status can show to be wrong of it; behind what it can of the core. */
  readonly findings?: () => Promise<Checks>;
  /** Words after `latchkey`. */
  readonly commands?: readonly Entry[];
  /** Commands that it adds to groups of the core, by the name of the group. */
  readonly subcommands?: Readonly<Record<string, () => Promise<Pick<Group, 'commands'>>>>;
  /** What it adds to `latchkey license show`. */
  readonly licensePart?: () => Promise<ReadLicensePart>;
  /** Its lines in `latchkey --help`. */
  readonly help?: Partial<Readonly<Record<CommandArea, readonly CommandLine[]>>>;
  /** Lines that stand in the place of lines of the core, by the commands of those. */
  readonly helpInstead?: Readonly<Record<string, CommandLine>>;
  /** What it finds for `latchkey doctor`. `hint` returns the command line of a command. */
  readonly examine?: (
    configuration: Configuration,
    hint: (words: string) => string,
  ) => Promise<readonly Finding[]>;
  /** The command that starts the daemon of a state directory; null if `latchkey serve` does. */
  readonly startCommand?: (stateDir: string) => Promise<string | null>;
};
