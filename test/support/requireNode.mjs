// Plain JavaScript: it must run, and say what to do, on a Node too old for everything else here.
const needed = 24
const major = Number(process.versions.node.split(".")[0])

if (major < needed) {
  console.error(`
Midcourse's own scripts run on Node ${needed} or newer, and this is Node ${process.versions.node}.

Run them through npm ("npm start", "npm test", "npm run check"): Node ${needed} is installed with the other
development dependencies, as the package "node", and npm puts it first on the path.
If you did run npm, that package's install script has not run (--ignore-scripts, or scripts not allowed). Then either
  - install again and let it run:   npm ci --ignore-scripts=false
  - or put Node ${needed} or newer on your path yourself.
`)
  process.exit(1)
}
