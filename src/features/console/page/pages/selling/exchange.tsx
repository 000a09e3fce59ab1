import { useState } from 'preact/hooks';
import { type ApiError, asApiError, call } from '../../api.ts';
import { useCanAct } from '../../daemon.tsx';
import { CannotAct } from '../../parts/cannot-act.tsx';
import { save } from '../../parts/download.tsx';
import { Refusal } from '../../parts/action.tsx';
import { SameCommand } from '../../parts/command.tsx';
import { Heading, Section } from '../../parts/page.tsx';
import { Import } from './import.tsx';
import type { Noun } from './import-mapping.ts';
import { NounChoice } from './noun-choice.tsx';

/** Import from another store, and export for another store, as CSV. */
export function Exchange() {
  return (
    <>
      <Heading title="Import and export" />
      {!useCanAct() && <CannotAct />}
      <Import />
      <Export />
    </>
  );
}

function Export() {
  const [noun, setNoun] = useState<Noun>('license');
  const [error, setError] = useState<ApiError | null>(null);
  const [isRunning, setRunning] = useState(false);
  const canAct = useCanAct();
  const start = async (): Promise<void> => {
    setRunning(true);
    setError(null);
    try {
      const response = await call('GET', `/admin/v1/${noun}s/export`);
      save(await response.blob(), `${noun}s.csv`);
    } catch (caught) {
      setError(asApiError(caught));
    }
    setRunning(false);
  };
  return (
    <Section title="Export">
      <p>The file has whole license keys and e-mail addresses: keep it where only you can read it.</p>
      <div class="filters">
        <NounChoice noun={noun} onNoun={setNoun} />
        <button type="button" disabled={!canAct || isRunning} onClick={() => void start()}>
          {isRunning ? 'Exporting …' : 'Export'}
        </button>
      </div>
      {error !== null && <Refusal error={error} />}
      <SameCommand line={`latchkey ${noun} export ${noun}s.csv`} />
    </Section>
  );
}
