#!/usr/bin/env python3
"""Makes three tables with the structure of public ones, with a fixed seed.

    make_tables.py FOLDER

Writes titanic.csv, houses.csv and bank.csv, and beside each the raw rows for a test, such as titanic-test.csv.
The rows are invented: only the structure (columns, gaps, categories, text, delimiter, balance) is like that of the
Titanic, Ames housing and bank marketing tables.
"""

import csv
import pathlib
import sys

import numpy as np


def write(folder, name, header, rows, train, **options):
    for suffix, part in (("", rows[:train]), ("-test", rows[train:])):
        with open(folder / f"{name}{suffix}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, **options)
            writer.writerow(header)
            writer.writerows(part)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def titanic(folder, random):
    """Gaps in Age, Cabin and Embarked; categories; text in Name and Ticket."""
    rows = []
    for i in range(1800):
        pclass = int(random.choice([1, 2, 3], p=[0.24, 0.21, 0.55]))
        sex = str(random.choice(["male", "female"], p=[0.65, 0.35]))
        age = float(np.clip(random.normal(38 - 4 * pclass, 13), 0.5, 80))
        sibsp = int(random.choice([0, 1, 2, 3, 4], p=[0.68, 0.23, 0.04, 0.03, 0.02]))
        parch = int(random.choice([0, 1, 2, 3], p=[0.76, 0.13, 0.09, 0.02]))
        fare = float(np.exp(random.normal(4.6 - 0.85 * pclass, 0.6)))
        port = str(random.choice(["S", "C", "Q"], p=[0.72, 0.19, 0.09]))
        score = 2.6 * (sex == "female") - 0.9 * (pclass - 2) - 0.03 * (age - 30) - 0.3 * sibsp + 0.5 * (port == "C")
        score += 1.5 * (age < 12) - 1.2
        survived = int(random.random() < sigmoid(1.4 * score))
        cabin = f"{'ABCDE'[int(random.integers(5))]}{int(random.integers(1, 130))}"
        has_cabin = random.random() < {1: 0.8, 2: 0.09, 3: 0.03}[pclass]
        ticket = str(int(random.integers(1000, 400000)))
        if random.random() < 0.25:
            ticket = f"PC {ticket}"
        title = "Mr." if sex == "male" else "Mrs."
        rows.append([
            i + 1, survived, pclass, f"Person{i}, {title} Given {int(random.integers(1000))}", sex,
            "" if random.random() < 0.2 else f"{age:g}" if age < 1 else f"{age:.0f}", sibsp, parch, ticket,
            f"{fare:.4f}", cabin if has_cabin else "", "" if random.random() < 0.003 else port
        ])
    header = ["PassengerId", "Survived", "Pclass", "Name", "Sex", "Age", "SibSp", "Parch", "Ticket", "Fare", "Cabin",
              "Embarked"]
    write(folder, "titanic", header, rows, 900)


def houses(folder, random):
    """80 columns: numbers, grades, categories, a date; gaps as NA."""
    count, train = 2900, 1460
    quality = random.integers(1, 11, count)
    area = np.exp(random.normal(7.25, 0.33, count))
    basement = np.clip(random.normal(1050, 400, count), 0, None)
    year = random.integers(1890, 2011, count)
    lot = np.exp(random.normal(9.1, 0.5, count))
    garage = random.integers(0, 4, count)
    places = [f"Place{i}" for i in range(25)]
    place = random.integers(0, 25, count)
    place_worth = random.normal(0, 0.15, 25)
    condition = random.integers(1, 10, count)
    fireplaces = random.integers(0, 4, count)
    log_price = (10.3 + 0.085 * quality + 0.00022 * area + 0.00009 * basement + 0.0022 * (year - 1950) +
                 0.045 * garage + place_worth[place] + 0.03 * condition + 0.04 * fireplaces +
                 0.00000006 * area * quality * 100 + 0.05 * np.log(lot))
    price = np.exp(log_price + random.normal(0, 0.09, count))
    sold_year = random.integers(2006, 2011, count)
    columns = {"Id": np.arange(1, count + 1)}
    columns["MSZoning"] = random.choice(["RL", "RM", "FV", "RH", "C (all)"], count, p=[0.78, 0.15, 0.04, 0.02, 0.01])
    frontage = np.round(np.sqrt(lot) * 0.7 + random.normal(0, 8, count))
    columns["LotFrontage"] = ["NA" if random.random() < 0.18 else f"{value:.0f}" for value in frontage]
    columns["LotArea"] = np.round(lot).astype(int)
    columns["Neighborhood"] = [places[i] for i in place]
    columns["OverallQual"], columns["OverallCond"] = quality, condition
    columns["YearBuilt"] = year
    columns["GrLivArea"] = np.round(area).astype(int)
    columns["TotalBsmtSF"] = np.round(basement).astype(int)
    columns["Fireplaces"], columns["GarageCars"] = fireplaces, garage
    columns["GarageYrBlt"] = ["NA" if cars == 0 else int(built) for cars, built in zip(garage, year)]
    grades = np.array(["Po", "Fa", "TA", "Gd", "Ex"])
    for name in ("KitchenQual", "ExterQual", "HeatingQC"):
        columns[name] = grades[np.clip((quality + random.integers(-2, 3, count)) // 2 - 1, 0, 4)]
    columns["Alley"] = random.choice(["NA", "Grvl", "Pave"], count, p=[0.93, 0.04, 0.03])
    columns["Sold"] = [f"{y}-{int(m):02d}-{int(d):02d}"
                       for y, m, d in zip(sold_year, random.integers(1, 13, count), random.integers(1, 29, count))]
    # The rest says little: numbers and categories, some with gaps.
    other = 0
    while len(columns) < 79:
        name = f"Other{other}"
        if other % 2 == 0:
            values = [f"{value:.0f}" for value in np.clip(random.normal(100, 60, count), 0, None)]
        else:
            values = list(random.choice(["None", "BrkFace", "Stone", "CBlock"], count))
        if other % 5 == 0:
            values = ["NA" if random.random() < 0.1 else value for value in values]
        columns[name] = values
        other += 1
    columns["SalePrice"] = np.round(price).astype(int)
    rows = [list(row) for row in zip(*columns.values())]
    write(folder, "houses", list(columns), rows, train)


def bank(folder, random):
    """Semicolons, quoted text, unbalanced classes; -1 and "unknown" as the public table has them."""
    jobs = ["admin.", "blue-collar", "technician", "services", "management", "retired", "student", "unknown"]
    months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    rows = []
    for _ in range(12000):
        age = int(np.clip(random.normal(41, 11), 18, 90))
        job = int(random.integers(len(jobs)))
        balance = int(random.normal(1400, 2500))
        duration = int(random.exponential(258))
        campaign = int(random.geometric(0.4))
        month = int(random.integers(12))
        housing, loan = random.random() < 0.55, random.random() < 0.16
        previous = int(random.poisson(0.6)) if random.random() < 0.2 else 0
        score = -4.0 + 0.0042 * duration - 0.12 * campaign - 0.7 * housing - 0.5 * loan + 0.35 * previous
        score += {5: 0.7, 6: 0.9}.get(job, 0) + (0.8 if month in (2, 8, 9, 11) else 0) + 0.00005 * balance
        answer = "yes" if random.random() < sigmoid(score) else "no"
        rows.append([
            age, jobs[job], str(random.choice(["married", "single", "divorced"], p=[0.6, 0.28, 0.12])),
            str(random.choice(["primary", "secondary", "tertiary", "unknown"], p=[0.15, 0.51, 0.29, 0.05])), "no",
            balance, "yes" if housing else "no", "yes" if loan else "no",
            str(random.choice(["cellular", "telephone", "unknown"], p=[0.65, 0.06, 0.29])), int(random.integers(1, 32)),
            months[month], duration, campaign, int(random.integers(1, 400)) if previous else -1, previous,
            "unknown" if previous == 0 else str(random.choice(["failure", "success", "other"])), answer
        ])
    header = ["age", "job", "marital", "education", "default", "balance", "housing", "loan", "contact", "day", "month",
              "duration", "campaign", "pdays", "previous", "poutcome", "y"]
    write(folder, "bank", header, rows, 6000, delimiter=";", quoting=csv.QUOTE_NONNUMERIC)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for number, make in enumerate((titanic, houses, bank)):
        make(folder, np.random.default_rng(number))


if __name__ == "__main__":
    main()
