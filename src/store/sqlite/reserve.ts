import { StorageError } from '../../service/ports.ts';
import type { Ballast } from './ballast.ts';
import type { CommandOutcome, Committer } from './commit.ts';

/**
 * A committer that frees the ballast when the disk is full, and then accepts essential commands only, until
 * there is space for the ballast again: the upstream's answers must be recorded meanwhile.
 */
export class ReservedCommitter<Command> implements Committer<Command> {
  readonly #committer: Committer<Command>;
  readonly #ballast: Ballast;
  readonly #isEssential: (command: Command) => boolean;

  constructor(committer: Committer<Command>, ballast: Ballast, isEssential: (command: Command) => boolean) {
    this.#committer = committer;
    this.#ballast = ballast;
    this.#isEssential = isEssential;
  }

  get broken(): StorageError | null {
    return this.#committer.broken;
  }

  /** Whether only essential commands are accepted. */
  get isFull(): boolean {
    return !this.#ballast.isTaken;
  }

  async commitBatch(commands: readonly Command[]): Promise<CommandOutcome[]> {
    if (this.isFull) return await this.#commitEssential(commands);
    const outcomes = await this.#committer.commitBatch(commands);
    if (!outcomes.some(isFull)) return outcomes;
    this.#ballast.giveBack();
    const again = await this.#commitEssential(commands.filter((_, index) => isFull(outcomes[index])));
    return outcomes.map((outcome) => (isFull(outcome) ? (again.shift() ?? outcome) : outcome));
  }

  async #commitEssential(commands: readonly Command[]): Promise<CommandOutcome[]> {
    const outcomes = await this.#committer.commitBatch(commands.filter(this.#isEssential));
    return commands.map(
      (command) =>
        (this.#isEssential(command) ? outcomes.shift() : undefined) ?? {
          error: new StorageError('full', null),
        },
    );
  }
}

function isFull(outcome: CommandOutcome | undefined): boolean {
  return (
    outcome !== undefined &&
    'error' in outcome &&
    outcome.error instanceof StorageError &&
    outcome.error.fault === 'full'
  );
}
