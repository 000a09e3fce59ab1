import { join } from 'node:path';
import { makeLog } from '../../../daemon/log.ts';
import { AdvancingTime } from '../../../daemon/system/clock.ts';
import { onEndingSignal } from '../../../daemon/system/process.ts';
import { makeTemporaryDirectory } from '../../../daemon/system/temporary-directory.ts';
import type { ForeignStoreName } from '../../../domain/header-names.ts';
import { demoConfiguration, printSteps } from '../demo-steps.ts';
import { StoreAgent } from './agent.ts';
import { openSample } from './sample.ts';

/** Shows what an agent of a store does, on a stand-in. `print` takes each line as it happens. Returns an exit code. */
export async function runStoreDemo(name: ForeignStoreName, print: (line: string) => void): Promise<number> {
  using directory = makeTemporaryDirectory('latchkey-demo-');
  const sample = await openSample(name);
  const log = await makeLog({ level: 'fatal', format: 'json' });
  const parts = { name, sample, directory: join(directory.path, 'agent'), time: new AdvancingTime(), log };
  const agent = new StoreAgent(parts, demoConfiguration);
  const end = async (): Promise<unknown> => await Promise.all([agent.stop(), sample.store.stop()]);
  // Before the directory is removed: Windows removes no open file.
  const stopListening = onEndingSignal(() => void end().finally(() => process.exit(1)));
  try {
    return await printSteps(() => sample.play(agent, print), print);
  } finally {
    stopListening();
    await end();
  }
}
